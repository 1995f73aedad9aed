"""`spac calibrate`: measures a machine with one model's shape and writes its hardware profile."""

import os
from dataclasses import replace
from pathlib import Path

import torch
from omegaconf import DictConfig
from rich.console import Console

from experiments.calibration_figure import calibration_figure
from experiments.calibration_noise import noise_warnings
from experiments.figure_style import save_figure
from experiments.fitted_table import FittedTable
from experiments.forced_choice import ForcedChoice, choose_forced, hardware_from
from experiments.outputs import new_folder, removed_if_unused
from experiments.profile_file import PROFILE_NAME, write_hardware
from experiments.profile_fit import about_lines, profile_values
from experiments.progress import progress_bar
from experiments.provenance import write_run_file
from experiments.terminal import terminal
from experiments.text_table import TextRow, TextTable
from experiments.values import as_list, positive, threads, whole_number
from policies.errors import UserError
from runtime.calibrate import Effort, calibrate
from runtime.calibration import Calibration
from runtime.devices import STANDIN, device_kind
from runtime.random_model import RandomModel
from runtime.standin_link import Link
from simulator.hardware import HardwareProfile, hardware_profile
from traces.report_json import write_json

MILLION = 1e6


def run(config: DictConfig) -> int:
    """Measure, print a table, keep hardware.yaml, calibration.json and calibration.png."""
    console = terminal()
    choice = choose_measured(config)
    torch.set_num_threads(threads(config["threads"]))
    effort = effort_from(config, choice)
    with removed_if_unused(new_folder(config["outputs"], "calibrate")) as folder:
        calibration = _measured(config, choice, effort, folder, console)
        console.print(calibration_table(calibration))  # first: writing may fail
        keep(calibration, choice, folder)
        show_notes(calibration, console)
    console.print(f"{folder / PROFILE_NAME}: hardware=PATH takes it", highlight=False)
    return 0


def _measured(
    config: DictConfig, choice: ForcedChoice, effort: Effort, folder: Path, console: Console
) -> Calibration:
    digest = choice.workload.trace.digest
    write_run_file(folder, "calibrate", config, {choice.workload.name: digest})
    device = choice.device()
    try:
        with console.status("building the model"):
            model = choice.build(device)
        return measure(model, choice, effort, console)
    finally:
        device.close()


def choose_measured(config: DictConfig, trace: str | None = None) -> ForcedChoice:
    """The machine and the model's shape, at its own speed. The stand-in's copies are throttled to
    the key link: unthrottled, they would take a core from the lanes.
    """
    choice = choose_forced(config, hardware_from(config), trace=trace)
    if device_kind(choice.device_name)[0] != STANDIN:
        return choice
    rate = config["link"]
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not rate > 0:
        raise UserError(f"link={rate}: bytes per second, above 0")
    latency = whole_number("link_latency", config["link_latency"])
    return replace(choice, link=Link(float(rate), latency))


def effort_from(config: DictConfig, choice: ForcedChoice) -> Effort:
    """How much is measured."""
    rows = tuple(positive("rows", one) for one in as_list(config["rows"]))
    if not rows:
        raise UserError("rows=[]: give numbers of tokens per expert, such as [1,2,4]")
    return Effort(
        slots=choice.settings.slots,
        staging=choice.settings.staging,
        rows=rows,
        repeats=positive("repeats", config["repeats"]),
        passes=positive("passes", config["passes"]),
        gamma=choice.settings.gamma,
        seed=whole_number("seed", config["seed"]),
    )


def measure(
    model: RandomModel, choice: ForcedChoice, effort: Effort, console: Console
) -> Calibration:
    """Calibrate with a progress bar; policies guess with the chosen profile meanwhile. What makes
    the times doubtful is among the notes."""
    load = os.getloadavg()[0]
    with progress_bar(console, "calibrate", effort.steps(model)) as advance:
        found = calibrate(model, choice.replay, effort, choice.costs(), advance)
    return replace(found, notes=[*found.notes, *noise_warnings(found.points, load)])


def show_notes(calibration: Calibration, console: Console) -> None:
    """What is not as it will be, or doubtful, a line each."""
    for line in calibration.notes:
        console.print(line, style="bold", highlight=False, soft_wrap=True, markup=False)


def keep(calibration: Calibration, choice: ForcedChoice, folder: Path) -> HardwareProfile:
    """Write profile, numbers and picture; the profile as simulators will read it."""
    write_json(folder / "calibration.json", calibration.as_data())
    name = f"{choice.device_name}-measured".replace(":", "-")
    values = profile_values(name, calibration, choice.model, choice.hardware)
    write_hardware(folder, values, about_lines(calibration))
    save_figure(calibration_figure(calibration), folder / "calibration.png")
    return hardware_profile(values, "the calibrated profile")


def calibration_table(calibration: Calibration) -> FittedTable:
    """Medians with noise; the held-out error of each curve."""
    errors = calibration.errors()
    rows = []
    for curve in dict.fromkeys(one.curve for one in calibration.points):
        points = calibration.curve(curve)
        for one in points:
            fit = (
                f"{one.predicted_ns / MILLION:.3f} ms" if one.held_out and one.predicted_ns else ""
            )
            cells = [
                curve,
                "" if not one.x else _size(one.x) if "link" in curve else f"{one.x} tokens",
                f"{one.median_ns / MILLION:.3f} ms",
                f"{one.low_ns / MILLION:.3f} - {one.high_ns / MILLION:.3f} ms",
                fit,
            ]
            rows.append(TextRow(cells))
        if curve in errors:
            cells = ["", "", "", "held-out error", f"{errors[curve]:.1%}"]
            rows.append(TextRow(cells, style="bold"))
    latency, rate = calibration.link
    note = (
        f"link {rate / 1e9:.2f} GB/s after {latency / 1000:.0f} us; CPU work at "
        f"{calibration.times.contention / 1024:.0%} of its speed while the link is busy"
    )
    title = "measured times; fit: predicted where held out"
    headings = ["what", "at", "median", "10-90 % of samples", "fit"]
    return FittedTable(TextTable(title, headings, rows), note=note)


def _size(size: int) -> str:
    return f"{size / 2**20:.3g} MiB" if size >= 2**20 else f"{size / 2**10:.3g} KiB"
