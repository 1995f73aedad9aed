"""What shows only by comparing two runs: contention, a longer text, prices of observations, and who
waits for the decision after a join.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from policies.api import NEEDS
from runtime.calibrate_layers import Bench, contention, held_up, layer_parts
from runtime.calibration_policy import CalibrationPolicy
from traces.runlog import RunLog

Tick = Callable[[str], None]
CONTEXT = 1024
PAUSE_NS = 500_000  # longer than a decision, so that noise does not hide it
PAUSED_PASSES = 16


def measure_held_up(bench: Bench, rows: int) -> float:
    """See calibrate_layers.held_up; with `rows` tokens an expert."""
    longer = replace(bench, passes=max(bench.passes, PAUSED_PASSES))
    return held_up(
        *(longer.uniform(CalibrationPolicy("cpu", pause_ns=pause), rows) for pause in (0, PAUSE_NS))
    )


def measure_differences(
    bench: Bench, alone: RunLog, rows: int, share: float, tick: Tick
) -> dict[str, Any]:
    """`contention`, `context_ns_per_1024` and `needs_ns` of MeasuredTimes. alone: a run of all
    experts on the CPU, `rows` tokens each; share: of the decision after a join, see layer_parts.
    """
    work = float(np.median(alone.layers["cpu_busy_ns"]))
    busy = bench.uniform(CalibrationPolicy("cpu", traffic=True), rows)
    tick("contention")
    far = bench.uniform(CalibrationPolicy("cpu"), rows, context=64 + CONTEXT)
    tick("context")
    base = _before_decision(alone)
    prices = []
    for need in NEEDS:
        if need == "draft_tokens":  # the host knows them anyway
            prices.append(0)
            continue
        asked = bench.uniform(CalibrationPolicy("cpu", needs=(need,)), rows)
        prices.append(max(0, round(_before_decision(asked) - base)))
        tick(f"price of {need}")
    dense = [float(np.median(layer_parts(log, share)["dense"])) for log in (alone, far)]
    return {
        "contention": contention(work, busy) or 1024,
        "context_ns_per_1024": max(0, round(dense[1] - dense[0])),
        "needs_ns": tuple(prices),
    }


def _before_decision(log: RunLog) -> float:
    """From the join before to the decision: where observations are made and sent."""
    layers = log.layers
    return float(np.median(layers["t2_ns"] - layers["t0_ns"] - layers["decision_ns"]))
