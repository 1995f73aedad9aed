"""`spac validate`: is the simulator right? Calibrates, runs policies for real, compares."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from experiments.calibrate import choose_measured, effort_from, keep, measure, show_notes
from experiments.commands import CONF
from experiments.figure_style import save_figure
from experiments.forced_choice import ForcedChoice, choose_forced
from experiments.outputs import copy_target, new_folder, removed_if_unused
from experiments.policy_choice import PolicyChoice, choose_policies
from experiments.progress import progress_bar
from experiments.provenance import RUN_FILE, write_run_file
from experiments.tables import write_table
from experiments.terminal import terminal
from experiments.validation import PADDED, UNPADDED, Validation, ticks, validate_table
from experiments.validation_figure import validation_figure
from experiments.validation_report import validation_table, verdicts
from experiments.values import as_list, as_mapping, positive, threads, whole_number
from policies.errors import UserError
from runtime.calibrate_mixed import MIXTURES
from runtime.devices import STANDIN, device_kind
from runtime.forced_engine import check_forced
from simulator.hardware import hardware_profile
from traces.report_json import write_json

LEAST_POLICIES, MOST_RUNS = 2, 1_000
STANDIN_GOAL, GPU_GOAL = 0.15, 0.05


def run(config: DictConfig) -> int:
    """Print a table and verdicts per clock; keep validation.json, table, pictures, hardware.yaml.

    A missed goal is a finding and no failure: the exit code is 0.
    """
    console = terminal()
    torch.set_num_threads(threads(config["threads"]))
    policies = choose_policies(
        [str(name) for name in as_list(config["policy"])], as_mapping(config["overrides"])
    )
    if len(policies) < LEAST_POLICIES:
        raise UserError("policy=: name at least two, their order is what a simulator is for")
    if positive("runs", config["runs"]) > MOST_RUNS:
        raise UserError(f"runs={config['runs']}: must be at most {MOST_RUNS}")
    planned = [(clock, _choice(clock, config)) for clock in clocks(config)]
    _refuse_impossible(planned, policies)
    for clock, choice in planned:
        if clock == UNPADDED:
            calibrated = _calibrated(config)
            effort_from(config, calibrated)
            _refuse_calibration(choice, calibrated, config)
    digests = {one.workload.name: one.workload.trace.digest for _, one in planned}
    results, kept = [], copy_target("keep", config["keep"])
    with removed_if_unused(new_folder(config["outputs"], "validate")) as folder:
        write_run_file(folder, "validate", config, digests)
        for clock, choice in planned:
            results.append(_validate(clock, choice, policies, config, folder, console))
            # Told before it is kept: whatever writing runs into, what took minutes can be read.
            _tell(results[-1], console)
            _write(results, folder)
            save_figure(validation_figure(results[-1]), folder / f"{clock}.png")
    if kept is not None:
        _copy(folder, kept)
    console.print(str(folder), highlight=False, soft_wrap=True)
    return 0


def _refuse_impossible(
    planned: Sequence[tuple[str, ForcedChoice]], policies: Sequence[PolicyChoice]
) -> None:
    for _, choice in planned:
        for policy in policies:
            check_forced(choice.shape, choice.replay, policy.build(), choice.settings)


def _refuse_calibration(choice: ForcedChoice, calibrated: ForcedChoice, config: DictConfig) -> None:
    """UserError where what is calibrated is not the model that is predicted."""
    sizes, known = calibrated.replay.model, choice.replay.model
    if (sizes.layers, sizes.experts, sizes.top_k) != (known.layers, known.experts, known.top_k):
        raise UserError(
            f"calibration_trace={config['calibration_trace']} has {sizes.layers} layers of "
            f"{sizes.experts} experts, top-{sizes.top_k}; trace={config['trace']} has "
            f"{known.layers} of {known.experts}, top-{known.top_k}; one model is measured and "
            "predicted, so name traces of one shape"
        )


def clocks(config: DictConfig) -> list[str]:
    """Which tables to make; UserError for a clock that the device does not have."""
    on_standin = device_kind(str(config["device"]))[0] == STANDIN
    if config["clock"] is None:
        return [PADDED, UNPADDED] if on_standin else [UNPADDED]
    chosen = [str(name) for name in as_list(config["clock"])]
    for name in chosen:
        if name not in (PADDED, UNPADDED):
            raise UserError(f"clock={name}: must be {PADDED} or {UNPADDED}")
        if name == PADDED and not on_standin:
            raise UserError(f"clock={name}: only the stand-in can be padded")
    return chosen


def _calibrated(config: DictConfig) -> ForcedChoice:
    """What the calibration measures."""
    return choose_measured(config, trace=str(config["calibration_trace"]))


def _choice(clock: str, config: DictConfig) -> ForcedChoice:
    """The unpadded clock is the model on the device; the padded one a published machine."""
    if clock == UNPADDED:
        return choose_measured(config)
    slow = whole_number("slow_motion", config["slow_motion"])
    if slow < 1:
        raise UserError(f"slow_motion={slow}: must be at least 1")
    names = {group: str(config[f"padded_{group}"]) for group in ("hardware", "model", "draft")}
    values = {group: _profile(group, name) for group, name in names.items()}
    padded = OmegaConf.merge(config, {"requests": config["padded_requests"]})
    OmegaConf.update(padded, "model", values["model"], merge=False)
    OmegaConf.update(padded, "draft", values["draft"], merge=False)
    hardware = hardware_profile(values["hardware"], "padded_hardware")
    return choose_forced(padded, hardware, slow, as_if=True)  # type: ignore[arg-type]


def _profile(group: str, name: str) -> dict[str, object]:
    path = CONF / group / f"{name}.yaml"
    if not path.is_file():
        there = ", ".join(sorted(one.stem for one in (CONF / group).glob("*.yaml")))
        raise UserError(f"padded_{group}={name} is unknown; there are {there}")
    return as_mapping(OmegaConf.load(path))


def _validate(
    clock: str,
    choice: ForcedChoice,
    policies: Sequence[PolicyChoice],
    config: DictConfig,
    folder: Path,
    console: Console,
) -> Validation:
    repeats, seed = positive("runs", config["runs"]), whole_number("seed", config["seed"])
    device = choice.device()
    try:
        with console.status("building the model"):
            model = choice.build(device)
        console.print(f"{clock}: {choice.note()}; {model.note}", highlight=False, soft_wrap=True)
        hardware, goal, rehearsed, seen = choice.hardware, None, None, list[str]()
        if clock == UNPADDED:
            calibrated = _calibrated(config)
            rehearsed = _calibrated(OmegaConf.merge(config, {"requests": 1}))  # type: ignore[arg-type]
            found = measure(model, calibrated, effort_from(config, calibrated), console)
            hardware = keep(found, calibrated, folder)
            show_notes(found, console)
            seen = _seen(choice, calibrated, policies)
            goal = STANDIN_GOAL if device_kind(choice.device_name)[0] == STANDIN else GPU_GOAL
        count = ticks(len(policies), repeats, rehearsed is not None)
        with progress_bar(console, f"validate, {clock}", count) as advance:
            result = validate_table(
                clock, choice, model, policies, hardware, repeats, goal, seed, advance, rehearsed
            )
        return replace(result, seen=seen)
    finally:
        device.close()


def _seen(
    choice: ForcedChoice, calibrated: ForcedChoice, policies: Sequence[PolicyChoice]
) -> list[str]:
    """What the calibration plays of what is to be predicted."""
    traces = [choice.workload, calibrated.workload]
    same = traces[0].trace.digest == traces[1].trace.digest
    return [f"trace {one.name}" for one in traces[:1] if same] + [
        f"policy {one.name}" for one in policies if one.name in MIXTURES
    ]


def _tell(result: Validation, console: Console) -> None:
    console.print(validation_table(result))
    for line in verdicts(result):
        console.print(line, highlight=False, soft_wrap=True)


def _write(results: Sequence[Validation], folder: Path) -> None:
    data = [one.as_data() | {"verdicts": verdicts(one)} for one in results]
    write_json(folder / "validation.json", data)
    write_table(folder, pd.DataFrame([row for one in results for row in one.rows()]))


def _copy(folder: Path, destination: Path) -> None:
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != RUN_FILE:
            shutil.copyfile(path, destination / path.name)
