"""`-m`: Hydra's own multirun, one job per combination, with whichever launcher is configured."""

import importlib
import os
import shutil
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
NAMED = "sweep="
SLURM = "hydra/launcher=submitit_slurm"


def run_jobs(command: Command, words: Sequence[str], task: Callable[[DictConfig], int]) -> int:
    """Run all jobs; exit code 0 only if every job gave 0. Jobs of a named sweep are planned before
    the first begins, and merged after the last."""
    values, overrides = split_words(command, words)
    machine, overrides = take_profile(overrides)
    overrides = translate(command, overrides)
    if SLURM in overrides and shutil.which("srun") is None:
        raise UserError(
            f"{SLURM}: there is no srun here; start it where jobs are submitted to Slurm, or use "
            "hydra/launcher=submitit_local"
        )

    def complete(config: DictConfig) -> DictConfig:
        return finish(command, config, values, machine)

    # A launcher may run this in another process, so it returns nothing to this one but errors.
    def job(config: DictConfig) -> None:
        code = task(complete(config))
        if code:
            raise UserError(f"a job of {command.name} ended with exit code {code}")

    def launch() -> None:
        application = hydra.main(
            config_path="pkg://conf", config_name=command.name, version_base="1.3"
        )
        with command_line(["spac", "--multirun", *QUIET, *overrides]):
            application(job)()

    if any(word.startswith(NAMED) and word != f"{NAMED}null" for word in overrides):
        # Loaded where needed: it imports the simulator.
        importlib.import_module("experiments.shards").run_shards(
            command, overrides, complete, launch
        )
    else:
        launch()
    return 0


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
