"""One trial of a search, in whichever process plays it: alone it depends only on the seed and on
the finished trials before it; beside others, also on which of them have ended by then."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import optuna
from optuna.trial import TrialState

from experiments.tuning_runs import Scene, Speeds, gain, speeds_of
from experiments.tuning_scene import prepared
from experiments.tuning_study import STARTUP, database_of, join_study


class Stopped(Exception):
    """A trial was stopped at a request; its speed so far was reported."""


@dataclass(frozen=True)
class Search:
    """What a process needs to play trials; sent along with each. `settings`: the command's, as
    YAML; `base`: speeds of the default on the fit requests; `parallel`: others play at the same
    time; `start`: tells this start of the command from others in the same process."""

    settings: str
    folder: Path
    pruner: str
    seed: int
    base: tuple[tuple[float, ...], ...]
    parallel: bool
    start: int

    def __call__(self, place: int) -> str:
        """Play trial number `place` of those that end, from 0; a word on it. The first is the
        default, if it can be drawn."""
        with database_of(self.folder):
            return self._play(place)

    def _play(self, place: int) -> str:
        _, scene, axes = prepared(self.settings)
        study = _joined(self)
        # A sampler of its own for each trial: a continued study draws what an uninterrupted one
        # would have drawn. The constant liar keeps it from what others are trying now.
        study.sampler = optuna.samplers.TPESampler(
            seed=(self.seed * 1_000_003 + place) % 2**32,
            n_startup_trials=STARTUP,
            constant_liar=self.parallel,
        )
        if place == 0 and all(axis.holds(axis.default) for axis in axes):
            study.enqueue_trial({axis.name: axis.default for axis in axes})
        trial = study.ask({axis.name: axis.distribution for axis in axes})
        try:
            value = play_trial(trial, scene, [list(one) for one in self.base])
        except Stopped:
            study.tell(trial, state=TrialState.PRUNED)
            return "stopped early"
        study.tell(trial, value)
        return f"{value - 1:+.1%}"


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


@lru_cache(maxsize=1)
def _joined(search: Search) -> optuna.Study:
    return join_study(search.folder, search.pruner)
