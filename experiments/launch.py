"""Runs one command: compose its config, import its module, turn refusals into one line."""

import importlib
import sys
from collections.abc import Callable, Sequence

from omegaconf import DictConfig

from experiments.commands import Command
from experiments.configuration import compose_config
from experiments.multirun import run_jobs
from experiments.refusals import REFUSED, one_line

MULTIRUN_FLAGS = ("-m", "--multirun")
REFUSAL_CODE = 2
INTERRUPT_CODE = 130


def launch(command: Command, words: Sequence[str]) -> int:
    """Exit code of `spac <command> <words>`: 0, 2 for a refusal, 130 for Ctrl-C."""
    try:
        if any(flag in words for flag in MULTIRUN_FLAGS):
            rest = [word for word in words if word not in MULTIRUN_FLAGS]
            return run_jobs(command, rest, task(command))
        config = compose_config(command, words)
        return task(command)(config)
    except REFUSED as error:
        print(f"error: {one_line(error, command)}", file=sys.stderr)
        return REFUSAL_CODE
    except OSError as error:
        # A folder that cannot be written, a full disk, a missing permission.
        where = f": {error.filename}" if error.filename else ""
        said = " ".join(f"{error.strerror or error}{where}".split())
        print(f"error: {said}", file=sys.stderr)
        return REFUSAL_CODE
    except MemoryError as error:  # of numpy, for sizes that no machine has
        print(f"error: out of memory ({error}); lower the sizes asked for", file=sys.stderr)
        return REFUSAL_CODE
    except KeyboardInterrupt:
        return tell_interruption()
    except Exception as error:
        if not interrupted(error):
            raise
        return tell_interruption()


def tell_interruption() -> int:
    """Say that Ctrl-C ended the command; its exit code."""
    print("interrupted: what was finished is kept", file=sys.stderr)
    return INTERRUPT_CODE


def interrupted(error: BaseException) -> bool:
    """True if `error` was raised while Ctrl-C was on its way out: a library that is torn out of its
    work may fail in its own clean-up, and that error hides the KeyboardInterrupt."""
    earlier = error.__context__
    return isinstance(error, KeyboardInterrupt) or (earlier is not None and interrupted(earlier))


def task(command: Command) -> Callable[[DictConfig], int]:
    """The `run` function of the command's module."""
    function: Callable[[DictConfig], int] = importlib.import_module(command.module).run
    return function
