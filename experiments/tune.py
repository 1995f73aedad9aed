"""`spac tune`: search a policy's parameters on some requests, report them on others too."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from optuna.trial import TrialState
from rich.console import Console

from experiments.comparison import refuse_run
from experiments.figure_style import save_figure
from experiments.outputs import new_folder, removed_if_unused
from experiments.policy_file import PolicyFile, write_policy
from experiments.progress import progress_bar
from experiments.provenance import write_run_file
from experiments.sweep import declare, locked, named_folder, settings_of
from experiments.terminal import terminal
from experiments.tuning_figure import Curve, sensitivity_figure
from experiments.tuning_outcome import Outcome, outcome_table, verdict, write_trials
from experiments.tuning_runs import gain, speeds_of
from experiments.tuning_scene import prepared
from experiments.tuning_search import Search
from experiments.tuning_space import Axis, with_values
from experiments.tuning_study import (
    best_values,
    check_pruner,
    database_of,
    finished,
    open_study,
)
from experiments.values import truth, whole_number
from experiments.workers import run_cells, workers_from
from policies.errors import UserError
from policies.sources import source_hash

PICTURE = "sensitivity.png"
MOST_TRIALS = 1_000_000


def run(config: DictConfig) -> int:
    """Search, then write study, trials, policy and picture; print table and verdict."""
    console = terminal()
    pruner, trials = check_pruner(config.pruner), whole_number("trials", config.trials)
    pictures = truth("pictures", config.pictures)
    if not 1 <= trials <= MOST_TRIALS:
        raise UserError(f"trials={trials}: must be 1..{MOST_TRIALS}")
    settings = OmegaConf.to_yaml(config, resolve=True)
    workloads, scene, axes = prepared(settings)
    for each in workloads:  # refused before there is a folder
        refuse_run(each.name, each.replay, scene.choice.build(), scene.setting, scene.choice.name)
    workers_from(config.workers, trials)
    console.print(scene.setting.scale_note(workloads[0].replay.model), highlight=False)
    console.print(f"searched: {', '.join(axis.name for axis in axes)}", highlight=False)
    with study_folder(config) as folder, database_of(folder):
        inputs = {str(workload.path): workload.trace.digest for workload in workloads}
        write_run_file(folder, "tune", config, inputs)
        study, base = open_study(folder, pruner), speeds_of(scene, scene.fit, {})
        done = len(finished(study))
        workers = workers_from(config.workers, trials - done)
        one = Search(
            settings, folder, pruner, whole_number("seed", config.seed), tuple(map(tuple, base)),
            parallel=workers > 1, start=time.time_ns(),
        )  # fmt: skip
        left = range(done, trials)
        with progress_bar(console, "tune", trials, min(done, trials)) as advance:
            for _, said in run_cells(one, left, range(len(left)), workers):
                advance(said)
        values = best_values(study)
        outcome = Outcome(
            scene, values, len(finished(study)), base, speeds_of(scene, scene.fit, values),
            speeds_of(scene, scene.held_out, {}), speeds_of(scene, scene.held_out, values),
        )  # fmt: skip
        paths = [write_trials(folder, study), write_tuned(folder, outcome, config)]
        if pictures:
            tried = [
                (trial.params, (trial.value or 0.0) - 1)
                for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            ]
            curves = curves_of(outcome, axes, tried, console)
            figure = sensitivity_figure(curves, scene.choice.label)
            paths.append(save_figure(figure, folder / PICTURE))
        console.print(outcome_table(outcome))
        for path in paths:
            console.print(str(path), highlight=False, soft_wrap=True)
        console.print(verdict(outcome), style="bold", highlight=False, soft_wrap=True)
    return 0


@contextmanager
def study_folder(config: DictConfig) -> Iterator[Path]:
    """A new numbered folder, or that of the study that the config names, locked against others."""
    if config.study is None:
        with removed_if_unused(new_folder(config.outputs, "tune")) as folder:
            yield folder
        return
    root = named_folder(config.outputs, "tune", "study", config.study)
    with locked(root):
        declare(root, [settings_of(config)], "study")
        yield root


def curves_of(
    outcome: Outcome,
    axes: Sequence[Axis],
    tried: Sequence[tuple[Mapping[str, Any], float]],
    console: Console,
) -> list[Curve]:
    """Each parameter varied around the tuned values."""
    scene, curves = outcome.scene, []
    points = {
        axis.name: sorted({*axis.points(), outcome.values[axis.name]}, key=_order)
        if not axis.choices
        else axis.points()
        for axis in axes
    }
    with progress_bar(console, "sensitivity", sum(map(len, points.values()))) as advance:
        for axis in axes:
            fit, held_out = [], []
            for value in points[axis.name]:
                values = {**outcome.values, axis.name: value}
                fit.append(gain(speeds_of(scene, scene.fit, values), outcome.fit_base) - 1)
                held = speeds_of(scene, scene.held_out, values)
                held_out.append(gain(held, outcome.held_base) - 1)
                advance(axis.name)
            trials = [(params[axis.name], gained) for params, gained in tried]
            tuned = outcome.values[axis.name]
            curves.append(Curve(axis, points[axis.name], fit, held_out, tuned, trials))
    return curves


def write_tuned(folder: Path, outcome: Outcome, config: DictConfig) -> Path:
    """policy.yaml: the tuned policy, with how it was found."""
    choice, gamma = with_values(outcome.scene.choice, outcome.values)
    name = f"{choice.name}-{'tuned' if config.study is None else config.study}"
    evidence = {
        "traces": list(outcome.scene.fit.names),
        "gain_on_fit": round(outcome.gain_on_fit, 6),
        "gain_on_held_out": round(outcome.gain_on_held_out, 6),
        "trials": outcome.trials,
        "seed": int(config.seed),
        "cache_ratio": None if config.slots is not None or config.budget else config.cache_ratio,
        "slots": config.slots,
        "hardware": outcome.scene.setting.machine.hardware.name,
        "source_hash": source_hash(),
    }
    about = f"{choice.name}, its parameters searched by spac tune; {verdict(outcome)}"
    return write_policy(
        folder, PolicyFile(name, choice.name, dict(choice.parameters), gamma, evidence), about
    )


def _order(value: Any) -> float:
    return float(value)
