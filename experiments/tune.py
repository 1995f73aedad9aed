"""`spac tune`: search a policy's parameters on some requests, report them on others too."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from optuna.trial import TrialState
from rich.console import Console

from experiments.configuration import as_list, as_mapping, number, truth, whole_number
from experiments.figure_style import save_figure
from experiments.machine import capacities_from, machine_from
from experiments.outputs import new_folder
from experiments.policy_choice import choose_policies
from experiments.policy_file import PolicyFile, write_policy
from experiments.progress import progress_bar
from experiments.provenance import write_run_file
from experiments.setting import settings_from
from experiments.sweep import declare, locked, named_folder, settings_of
from experiments.trace_choice import Workload, acceptance_from, open_workloads
from experiments.tuning_figure import Curve, sensitivity_figure
from experiments.tuning_outcome import Outcome, outcome_table, verdict, write_trials
from experiments.tuning_runs import Scene, divide, gain, speeds_of
from experiments.tuning_space import GAMMA, Axis, space_of, with_values
from experiments.tuning_study import best_values, check_pruner, finished, open_study, search
from policies.composed import ComposedPolicy
from policies.errors import UserError
from policies.parts import FixedWindow
from policies.sources import source_hash
from simulator.foresight import is_clairvoyant

PICTURE = "sensitivity.png"


def run(config: DictConfig) -> int:
    """Search, then write study, trials, policy and picture; print table and verdict."""
    console = Console()
    pruner, trials = check_pruner(config.pruner), whole_number("trials", config.trials)
    pictures = truth("pictures", config.pictures)
    if trials < 1:
        raise UserError(f"trials={trials}: must be at least 1")
    workloads = workloads_of(config)
    scene, axes = scene_of(config, workloads), axes_of(config, workloads)
    console.print(scene.setting.scale_note(workloads[0].replay.model), highlight=False)
    console.print(f"searched: {', '.join(axis.name for axis in axes)}", highlight=False)
    with study_folder(config) as folder:
        inputs = {str(workload.path): workload.trace.digest for workload in workloads}
        write_run_file(folder, "tune", config, inputs)
        study, base = open_study(folder, pruner), speeds_of(scene, scene.fit, {})
        seed = whole_number("seed", config.seed)
        with progress_bar(console, "tune", trials, min(len(finished(study)), trials)) as advance:
            search(study, scene, axes, base, trials, seed, advance)
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
        yield new_folder(config.outputs, "tune")
        return
    root = named_folder(config.outputs, "tune", "study", config.study)
    with locked(root):
        declare(root, [settings_of(config)], "study")
        yield root


def workloads_of(config: DictConfig) -> list[Workload]:
    """The traces of the search, opened."""
    names = None if config.trace is None else [str(name) for name in as_list(config.trace)]
    acceptance, seed = acceptance_from(config.acceptance), whole_number("seed", config.seed)
    return open_workloads(names, acceptance, seed)


def scene_of(config: DictConfig, workloads: list[Workload]) -> Scene:
    """Policy, setting and divided requests; UserError for what cannot be searched."""
    for key in ("policy", "cache_ratio", "slots", "gamma"):
        if len(as_list(config[key])) != 1:
            raise UserError(f"{key}={config[key]}: tune takes one; spac compare plays grids")
    choices = choose_policies([str(config.policy)], as_mapping(config.overrides))
    if len(choices) != 1:
        raise UserError("a list of parameter values is a grid; give its ends as ranges.<parameter>")
    policy = choices[0].build()
    if not isinstance(policy, ComposedPolicy) or config.engine not in ("auto", "compiled"):
        raise UserError(
            f"policy {choices[0].label}, engine={config.engine}: tune plays policies made of parts "
            "on the compiled engine"
        )
    if is_clairvoyant(policy):
        raise UserError(f"policy {choices[0].label} sees the future: there is nothing to tune")
    capacities = capacities_from(config, [config.cache_ratio], [config.slots])
    (setting,) = settings_from(config, machine_from(config), capacities, [config.gamma])
    share = number("held_out", config.held_out)
    return Scene(choices[0], setting, *divide(workloads, share, setting.requests))


def axes_of(config: DictConfig, workloads: list[Workload]) -> list[Axis]:
    """What is searched. gamma is part of it where every trace can be played with several windows
    and the policy has none of its own."""
    (choice,) = choose_policies([str(config.policy)], as_mapping(config.overrides))
    window = choice.build().window
    free = GAMMA not in choice.parameters and (
        not isinstance(window, FixedWindow) or window.gamma is None
    )
    gamma = whole_number("gamma", config.gamma) if free else None
    if any(workload.replay.fixed_gamma is not None for workload in workloads):
        gamma = None
    limit = min(workload.replay.gamma_limit for workload in workloads)
    wanted = None if config.parameters is None else [str(one) for one in as_list(config.parameters)]
    return space_of(choice, as_mapping(config.ranges), wanted, gamma, limit)


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
