"""The console that commands print on."""

import os
import sys

from rich.console import Console

PIPED = 160  # columns where nobody said how many there are


class Terminal(Console):
    """Where nobody reads on, the error goes to whoever started the command, as with print: rich
    would end the process with code 1."""

    def on_broken_pipe(self) -> None:
        """Called from within the handler of the BrokenPipeError."""
        self.quiet = True
        raise


def terminal(stderr: bool = False, quiet: bool = False) -> Console:
    """Standard output, or standard error. In a pipe or a file lines may be PIPED columns long,
    where rich would take 80, unless COLUMNS is set."""
    stream = sys.stderr if stderr else sys.stdout
    free = not stream.isatty() and "COLUMNS" not in os.environ
    return Terminal(stderr=stderr, quiet=quiet, width=PIPED if free else None)
