"""Measures what only shows while lanes, link and driver work together: policies on real routing.

Policies differ in what they mix, and a table of costs has one number for all of them. So it is
measured in three, far apart, and the middle is taken: the error for others is half their distance.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from policies.zoo.lru_cpu import lru_cpu
from policies.zoo.n_cpu_moe import n_cpu_moe
from policies.zoo.static_hot import static_hot
from runtime.calibrate_layers import Bench, layer_parts, level
from traces.measured_times import MeasuredTimes, interpolated
from traces.replay import Replay
from traces.runlog import RunLog

# Both lanes and a link that never rests; both lanes, the link at rest; one lane at a time.
MIXTURES = {"lru_cpu": lru_cpu, "static_hot": static_hot, "n_cpu_moe": n_cpu_moe}
CONTEXT = 1024
Samples = Mapping[str, Sequence[float]]
Tick = Callable[[str], None]


@dataclass(frozen=True)
class Alone:
    """What was measured without a mixture. `times`: curves by `rows`, `contention` and
    `context_ns_per_1024`, under the names of MeasuredTimes; `leave_share` of 1.
    """

    rows: tuple[int, ...]
    times: Mapping[str, Any]
    leave_share: float

    def curve(self, name: str, top: int) -> np.ndarray:
        """int64 [top + 1], in ns."""
        values = self.times[f"{name}_ns"]
        return np.append(0, interpolated(self.rows, values, np.arange(1, top + 1)))


def measure_mixed(
    bench: Bench, replay: Replay, gamma: int, alone: Alone, tick: Tick
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """(parts of a layer in ns, one median per mixture; levels: means over the mixtures)."""
    found: dict[str, list[float]] = {}
    levels: dict[str, list[float]] = {}
    for name, policy in MIXTURES.items():
        log = bench.play(replay, policy(), gamma)
        parts = layer_parts(log, alone.leave_share)
        for part, samples in parts.items():
            found.setdefault(part, []).extend([float(np.median(samples))] if samples else [])
        for lane, factor in _levels(log, parts["dense"], alone).items():
            levels.setdefault(lane, []).append(factor)
        tick(f"mixed, {name}")
    return found, {lane: float(np.mean(factors)) for lane, factors in levels.items()}


def fixed_times(found: Samples) -> dict[str, int]:
    """Times that do not depend on tokens. The layer's sum is a part of every layer: what comes
    after the CPU lane alone is the rest.
    """
    middle = {name: _mean(values) for name, values in found.items()}
    return {
        "d2h_ns": middle["message"],
        "dispatch_ns": middle["dispatch"],
        "return_ns": max(0, middle["return"] - middle["sum"]),
        "draft_step_ns": middle["draft"],
        "pass_ns": middle["head"],
        "decision_layer_ns": middle["decision"],
        "decision_leave_ns": middle["leave decision"],
        "decision_draft_ns": middle["draft decision"],
    }


def levelled(times: MeasuredTimes, levels: Mapping[str, float], found: Samples) -> MeasuredTimes:
    """Curves at the level they have in a mixture; the sum that ends a layer counts as dense."""
    more = {"dense": _mean(found["sum"])}
    changed = {
        f"{name}_ns": tuple(
            round(one * factor) + more.get(name, 0) for one in getattr(times, f"{name}_ns")
        )
        for name, factor in levels.items()
    }
    return replace(times, **changed)


def _levels(log: RunLog, dense: Sequence[float], alone: Alone) -> dict[str, float]:
    """Of lanes and dense part, 1 being as fast as alone; lanes without work are left out."""
    passes = log.passes.set_index("pass_index").loc[log.layers["pass_index"]]
    top = max(int(max(map(max, log.layers["counts"]))), int(passes["rows"].max()))
    # Texts are longer than the made-up ones: what that costs has its own entry.
    context = alone.times["context_ns_per_1024"] * passes["start_position"].to_numpy() // CONTEXT
    expected = alone.curve("dense", top)[passes["rows"].to_numpy()] + context
    factors = {
        "cpu": level(log, "cpu", alone.curve("cpu", top), alone.times["contention"]),
        "gpu": level(log, "gpu", alone.curve("gpu", top)),
        "dense": float(np.median(dense) / np.median(expected)),
    }
    return {lane: factor for lane, factor in factors.items() if factor is not None}


def _mean(values: Sequence[float]) -> int:
    return round(float(np.mean(values))) if len(values) else 0
