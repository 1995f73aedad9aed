"""`spac`, the one console command. Its first word chooses a command; modules load when used."""

import atexit
import importlib
import os
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

from experiments.commands import COMMANDS
from experiments.help_text import command_help, overview
from experiments.script import (
    PIPE_CLOSED,
    REFUSED,
    flushed,
    leave_pipe,
    mendable,
    open_streams,
)

HELP_FLAGS = ("-h", "--help")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0 done, 1 failed, 2 refused with one line, 130 interrupted, 143 ended."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return dispatch(words)
    except KeyboardInterrupt:  # while modules load or the last line is printed
        return 130
    except BrokenPipeError:  # the reader of a pipe, such as head, has seen enough
        leave_pipe()
        return PIPE_CLOSED
    except OSError as error:  # a help that is written to a full disk
        print(f"error: {mendable(error)}", file=sys.stderr)
        return REFUSED


def dispatch(words: list[str]) -> int:
    """Print help, or launch the command of the first word."""
    if not words or words[0] in (*HELP_FLAGS, "help"):
        print(overview())
        return 0
    for word in words:
        if any("\ud800" <= letter <= "\udfff" for letter in word):  # Python's for foreign bytes
            print(f"error: {word!a}: no text in the encoding of this locale", file=sys.stderr)
            return REFUSED
    command = COMMANDS.get(words[0])
    if command is None:
        print(
            f"error: unknown command '{words[0]}'; there are: {', '.join(COMMANDS)}",
            file=sys.stderr,
        )
        return 2
    if any(flag in words[1:] for flag in HELP_FLAGS):
        print(command_help(command))
        return 0
    launcher = importlib.import_module("experiments.launch")
    code: int = launcher.launch(command, words[1:])
    return code


def program() -> NoReturn:
    """The process of `spac`: run, clean up, end at once.

    The interpreter is not taken down piece by piece: thread pools of native libraries, caught at
    work by that, aborted about one process in a hundred after its work was done and told.
    """
    open_streams()
    code = flushed(main())
    # In the order of Python's own end: pools stop their processes with the threads, and only then
    # may exit handlers wait for those processes.
    threading._shutdown()
    atexit._run_exitfuncs()
    os._exit(code)


if __name__ == "__main__":
    program()
