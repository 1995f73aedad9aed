"""calibrate: measures a machine with one model's shape: link, experts on both sides, contention,
fixed cost of a layer, draft step, head, synchronisation.

It needs no scipy, no simulator and no Hydra, so that it runs wherever the runtime does.
"""

import platform
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from policies.api import NEEDS
from policies.costs import CostTable
from policies.errors import UserError
from runtime.calibrate_compared import measure_differences, measure_held_up
from runtime.calibrate_layers import Bench, layer_parts, per_expert_ns
from runtime.calibrate_link import ALONE, LOADED, copy_sizes, measure_link
from runtime.calibrate_mixed import MIXTURES, Alone, fixed_times, levelled, measure_mixed
from runtime.calibration import Calibration
from runtime.calibration_points import Point, fit_link, fit_rows, point
from runtime.calibration_policy import CalibrationPolicy
from runtime.device import COMPUTE, Device
from runtime.experts import gating_of
from runtime.random_model import RandomModel
from traces.measured_times import MeasuredTimes
from traces.replay import Replay
from traces.runlog import RunLog

Tick = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """How much is measured. rows: numbers of tokens per expert; repeats: of a copy; passes: of each
    run; slots, staging: of the engine that is measured; paced: see Bench.
    """

    slots: int
    staging: int = 2
    rows: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 9)
    repeats: int = 7
    passes: int = 6
    gamma: int = 4
    seed: int = 0
    paced: bool = False

    def steps(self, model: RandomModel) -> int:
        """How often `tick` will be called."""
        copies = 2 * self.repeats * len(copy_sizes(model))
        return copies + 2 * len(self.rows) + len(NEEDS) + 3 + len(MIXTURES)


def calibrate(
    model: RandomModel, mixed: Replay, effort: Effort, guess: CostTable, tick: Tick
) -> Calibration:
    """Measure on the model's device, which stays open.

    mixed: passes as a policy will see them (of the model's shape); use others than those that are
    predicted later. guess: a cost table for policies until there is a measured one.
    """
    if effort.slots < model.shape.layers * model.shape.top_k:
        raise UserError(
            f"slots={effort.slots}: to time experts on the GPU, each of the {model.shape.layers} "
            f"layers needs {model.shape.top_k} slots; use at least "
            f"{model.shape.layers * model.shape.top_k}"
        )
    order = random.Random(effort.seed)
    bench = Bench(model, guess, effort.slots, effort.staging, effort.passes, effort.paced)
    copies = measure_link(
        model, gating_of(model.target), copy_sizes(model), effort.repeats, order, tick
    )
    logs = _uniform_runs(bench, effort, order, tick)
    middle = effort.rows[len(effort.rows) // 2]
    share = measure_held_up(bench, middle)
    tick("decision after a join")
    points, times = _curves(copies, logs, effort, share)
    more = measure_differences(bench, logs["cpu", middle], middle, share, tick)
    found, levels = measure_mixed(
        bench, mixed, effort.gamma, Alone(effort.rows, times | more, share), tick
    )
    points += [point(name, 0, samples) for name, samples in found.items() if samples]
    points.append(point("synchronise", 0, _synchronise_ns(model.device)))
    tick("synchronise")
    latency, rate, linked = fit_link([one for one in points if one.curve == ALONE])
    points = linked + [one for one in points if one.curve != ALONE]
    expert = bench.model.arena.layout.expert_bytes
    measured = MeasuredTimes(
        model=model.shape.name,
        dtype=str(model.dtype).removeprefix("torch."),
        layers=model.shape.layers,
        hidden=model.shape.hidden,
        expert_width=model.shape.expert_width,
        expert_bytes=expert,
        rows=effort.rows,
        **times,
        **more,
        **fixed_times(found),
        leave_share=round(1024 * share),
        copy_latency_ns=max(0, round(latency)),
        copy_ns=max(1, _at(linked, expert) - max(0, round(latency))),
    )
    notes = [model.note] if model.shape.distinct < model.shape.layers else []
    measured = levelled(measured, levels, found)
    return Calibration(points, measured, (latency, rate), levels, machine_facts(model.device),
                       notes)  # fmt: skip


def machine_facts(device: Device) -> dict[str, str]:
    """What the numbers belong to."""
    facts = {
        "device": device.name,
        "processor": platform.processor() or platform.machine(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": str(torch.get_num_threads()),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    if device.torch_device.type != "cpu":
        accelerator = torch.get_device_module(device.torch_device)
        facts["accelerator"] = str(accelerator.get_device_name(device.torch_device))
    return facts


Key = tuple[str, int]


def _uniform_runs(
    bench: Bench, effort: Effort, order: random.Random, tick: Tick
) -> dict[Key, RunLog]:
    """Runs by lane and tokens per expert, made in random order: drifts of the clock hit all."""
    plan: list[Key] = [(lane, rows) for lane in ("cpu", "gpu") for rows in effort.rows]
    order.shuffle(plan)
    logs = {}
    for lane, rows in plan:
        logs[lane, rows] = bench.uniform(CalibrationPolicy(lane), rows)  # type: ignore[arg-type]
        tick(f"experts on the {lane.upper()}, {rows} tokens")
    return logs


def _curves(
    copies: list[Point], logs: dict[Key, RunLog], effort: Effort, share: float
) -> tuple[list[Point], dict[str, tuple[int, ...]]]:
    points, times = [one for one in copies if one.curve == ALONE], {}
    loaded = [one for one in copies if one.curve == LOADED]
    points += fit_link(loaded)[2] if loaded else []
    for lane in ("cpu", "gpu"):
        raw = [point(f"expert, {lane.upper()}", rows, per_expert_ns(logs[lane, rows], lane))
               for rows in effort.rows]  # fmt: skip
        times[f"{lane}_ns"], fitted = fit_rows(raw)
        points += fitted
    dense = [
        point("layer without experts", rows, layer_parts(logs["cpu", rows], share)["dense"])
        for rows in effort.rows
    ]
    times["dense_ns"], fitted = fit_rows(dense)
    return points + fitted, times


def _at(points: Sequence[Point], size: int) -> int:
    return next(one.median_ns for one in points if one.x == size)


def _synchronise_ns(device: Device) -> list[float]:
    """From queueing nothing on the compute stream until the host knows that it is done."""
    stream, samples = device.stream(COMPUTE), []
    for _ in range(50):
        begin = device.clock_ns()
        device.synchronize(device.run(stream, lambda: None))
        samples.append(float(device.clock_ns() - begin))
    return samples
