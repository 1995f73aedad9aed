"""`-m`: Hydra's own multirun, one job per combination, with whichever launcher is configured."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import hydra
from omegaconf import DictConfig

from experiments.commands import Command
from experiments.configuration import finish, split_words, translate
from experiments.profile_file import take_profile
from policies.errors import UserError

# Commands make their own output folders, so Hydra's are switched off. A user may override these.
QUIET = (
    "hydra.output_subdir=null",
    "hydra.job.chdir=false",
    "hydra.sweep.dir=outputs/.multirun",
    "hydra.sweep.subdir=.",
    "hydra/job_logging=none",
    "hydra/hydra_logging=none",
)


def run_jobs(command: Command, words: Sequence[str], task: Callable[[DictConfig], int]) -> int:
    """Run all jobs; exit code 0 only if every job gave 0."""
    values, overrides = split_words(command, words)
    machine, overrides = take_profile(overrides)
    overrides = translate(command, overrides)
    codes: list[int] = []

    def job(config: DictConfig) -> None:
        code = task(finish(command, config, values, machine))
        codes.append(code)
        if code:
            raise UserError(f"a job of {command.name} ended with exit code {code}")

    application = hydra.main(config_path="pkg://conf", config_name=command.name, version_base="1.3")
    with command_line(["spac", "--multirun", *QUIET, *overrides]):
        application(job)()
    return max(codes, default=0)


@contextmanager
def command_line(arguments: list[str]) -> Iterator[None]:
    """Hydra's main reads sys.argv, and hides exceptions unless HYDRA_FULL_ERROR is set."""
    kept = sys.argv
    sys.argv = arguments
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    finally:
        sys.argv = kept
