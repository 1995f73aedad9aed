"""Runs one command: compose its config, import its module, turn refusals into one line."""

import importlib
import sys
from collections.abc import Callable, Sequence

from omegaconf import DictConfig

from experiments import script
from experiments.commands import Command
from experiments.configuration import compose_config
from experiments.ctrl_c import CtrlC, Terminated
from experiments.multirun import run_jobs
from experiments.refusals import REFUSED, one_line

MULTIRUN_FLAGS = ("-m", "--multirun")


def launch(command: Command, words: Sequence[str]) -> int:
    """Exit code of `spac <command> <words>`: 0, 2 for a refusal, 130 or 143 for a signal."""
    with CtrlC() as ctrl_c:
        try:
            if any(flag in words for flag in MULTIRUN_FLAGS):
                rest = [word for word in words if word not in MULTIRUN_FLAGS]
                return run_jobs(command, rest, task(command))
            config = compose_config(command, words)
            return task(command)(config)
        except (KeyboardInterrupt, Terminated):
            return script.tell_interruption(ctrl_c.number)
        except Exception as error:
            if isinstance(error, BrokenPipeError) and script.reader_gone():
                raise
            if ctrl_c.raised:
                return script.tell_interruption(ctrl_c.number)
            return tell_refusal(error, command)


def tell_refusal(error: Exception, command: Command) -> int:
    """Say in one line what the user can mend; its exit code. A fault of ours is raised again."""
    if isinstance(error, REFUSED):
        said = one_line(error, command)
    else:
        known = script.mendable(error)
        if known is None:
            raise error
        said = known
    print(f"error: {said}", file=sys.stderr)
    return script.REFUSED


def task(command: Command) -> Callable[[DictConfig], int]:
    """The `run` function of the command's module, which tells when it has kernels to compile."""
    function: Callable[[DictConfig], int] = importlib.import_module(command.module).run
    if "numba" not in sys.modules:  # a command without kernels need not load it
        return function
    notice = importlib.import_module("experiments.compile_notice").compile_notice

    def told(config: DictConfig) -> int:
        with notice():
            return function(config)

    return told
