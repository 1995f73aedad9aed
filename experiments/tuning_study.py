"""The search itself: an Optuna study in SQLite, continued after whatever stopped it, in which each
trial depends only on the seed and on the finished trials before it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from experiments.tuning_runs import Scene, Speeds, gain, speeds_of
from experiments.tuning_space import Axis
from policies.errors import UserError

STUDY_FILE = "study.db"
NAME = "tune"
STARTUP = 10  # trials drawn at random, and finished ones that a pruner needs
PRUNERS = ("median", "quartile", "none")
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


class Stopped(Exception):
    """A trial was stopped at a request; its speed so far was reported."""


def check_pruner(pruner: object) -> str:
    """The key pruner=; UserError if there is no such one."""
    if pruner not in PRUNERS:
        raise UserError(f"pruner={pruner}: there are {', '.join(PRUNERS)}")
    return str(pruner)


def open_study(folder: Path, pruner: str) -> optuna.Study:
    """The study kept in `folder`, new or as it is; UserError if the file is none. A trial that was
    under way when a process was killed is marked as failed and counts for nothing."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path = folder / STUDY_FILE
    try:
        study = optuna.create_study(
            storage=f"sqlite:///{path}", study_name=NAME, direction="maximize",
            pruner=_pruner(pruner), load_if_exists=True,
        )  # fmt: skip
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            study.tell(trial.number, state=TrialState.FAIL)
    except Exception as error:  # whatever the database says of a file that is no study
        raise UserError(
            f"{path}: cannot be read as a study ({type(error).__name__}); begin another study="
        ) from error
    return study


def search(
    study: optuna.Study,
    scene: Scene,
    axes: Sequence[Axis],
    base: Speeds,
    trials: int,
    seed: int,
    advance: Callable[[str], None],
) -> None:
    """Play until the study has `trials` finished trials. The first is the default, if it can be
    drawn."""
    distributions = {axis.name: axis.distribution for axis in axes}
    start = {axis.name: axis.default for axis in axes}
    while (done := len(finished(study))) < trials:
        # A sampler of its own for each trial: a continued study draws what an uninterrupted one
        # would have drawn.
        study.sampler = optuna.samplers.TPESampler(
            seed=seed * 1_000_003 + done, n_startup_trials=STARTUP
        )
        if done == 0 and all(axis.holds(axis.default) for axis in axes):
            study.enqueue_trial(start)
        trial = study.ask(distributions)
        try:
            value = play_trial(trial, scene, base)
            study.tell(trial, value)
            advance(f"{value - 1:+.1%}")
        except Stopped:
            study.tell(trial, state=TrialState.PRUNED)
            advance("stopped early")


def play_trial(trial: optuna.Trial, scene: Scene, base: Speeds) -> float:
    """Speed of the trial's parameters relative to the default on the fit requests; Stopped where
    the pruner gives it up."""
    step = 0

    def seen(speeds: Speeds) -> None:
        nonlocal step
        step += 1
        trial.report(gain(speeds, base), step)
        if step < scene.fit.counted and trial.should_prune():
            raise Stopped

    return gain(speeds_of(scene, scene.fit, trial.params, seen), base)


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that ended, by themselves or at a request."""
    return study.get_trials(deepcopy=False, states=FINISHED)


def best_values(study: optuna.Study) -> Mapping[str, Any]:
    """Parameters of the fastest trial; the earliest of equal ones."""
    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return dict(max(done, key=lambda trial: (trial.value or 0.0, -trial.number)).params)


def _pruner(name: str) -> optuna.pruners.BasePruner:
    if name == "none":
        return optuna.pruners.NopPruner()
    # Optuna's percentile is that of trials kept.
    kept = 50.0 if name == "median" else 75.0
    return optuna.pruners.PercentilePruner(kept, n_startup_trials=STARTUP, n_warmup_steps=1)
