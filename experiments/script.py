"""What programs of the project do beside `spac`: options checked, one line for what a person can
mend, the exit codes of `spac`. Nothing heavy is imported: the GPU check needs no Hydra.
"""

import argparse
import contextlib
import math
import os
import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from policies.errors import UserError

REFUSED, INTERRUPTED, PIPE_CLOSED = 2, 130, 141


class Options(argparse.ArgumentParser):
    """Options whose refusal is one line instead of argparse's usage and error."""

    def error(self, message: str) -> NoReturn:
        """UserError in place of an exit."""
        raise UserError(f"{' '.join(message.split())}; {self.prog} --help lists the options")


def open_streams() -> None:
    """Standard streams that the caller closed (`>&-`) lead nowhere: else Python has None in their
    place, and the next file that is opened would get their number, and what is printed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


def run_script(main: Callable[[], int]) -> int:
    """Exit code of `main`: its own, 2 after one line for a refusal, 130 for Ctrl-C, 141 for a pipe
    that nobody reads. A fault of ours keeps its traceback."""
    open_streams()
    try:
        return main()
    except KeyboardInterrupt:
        return tell_interruption()
    except BrokenPipeError:
        leave_pipe()
        return PIPE_CLOSED
    except Exception as error:
        said = str(error) if isinstance(error, UserError) else mendable(error)
        if said is None:
            raise
        print(f"error: {' '.join(said.split())}", file=sys.stderr)
        return REFUSED


def tell_interruption(number: int | None = None) -> int:
    """Say that a signal, Ctrl-C where no number is given, ended the program; its exit code."""
    print("interrupted: what was finished is kept", file=sys.stderr)
    return INTERRUPTED if number is None else 128 + number


def mendable(error: Exception) -> str | None:
    """What the machine refused, in one line; None for a fault of ours."""
    if isinstance(error, OSError):
        # A folder that cannot be written, a full disk, a missing permission.
        where = f": {error.filename}" if error.filename else ""
        return " ".join(f"{error.strerror or error}{where}".split())
    if isinstance(error, MemoryError):  # of numpy, for sizes that no machine has
        return f"out of memory ({error}); lower the sizes asked for"
    return None


def reader_gone(number: int = 1) -> bool:
    """Whether the descriptor, standard output where none is given, is a pipe that nobody reads."""
    poll = select.poll()
    poll.register(number, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def leave_pipe() -> None:
    """Let what is still in the buffer of standard output go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def flushed(code: int) -> int:
    """Write what is left in the buffers of the standard streams; `code`, or that of a pipe that
    nobody reads, or of a refusal where the text could not be written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or PIPE_CLOSED
        leave_pipe()
    except OSError as error:
        print(f"error: standard output: {mendable(error)}", file=sys.stderr)
        code = code or REFUSED
        leave_pipe()
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    return code


def count(text: str) -> int:
    """An option that is a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number of at least 1")
    return int(text)


def seconds(text: str) -> float:
    """An option that is a time above 0."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: must be a number of seconds above 0")
    return found


def new_file(text: str) -> Path:
    """An option that names a file to write: its folder is made at once, because a measurement of
    minutes must not find at its end that it has no place."""
    path = Path(text)
    if not text or path.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: a folder; name the file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text}: no such place ({error.strerror})") from error
    if not os.access(path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text}: no leave to write there")
    return path
