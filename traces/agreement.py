"""How well predicted runs agree with measured ones: time, hits and bytes by policy, and order."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from traces.metrics import Metrics, metrics
from traces.run_info import RunLog
from traces.runlog_schema import DECODE_PHASE


@dataclass(frozen=True)
class Agreement:
    """One policy. Seconds are decode time outside warm-up; `measured_*` medians of `repeats` runs,
    `fastest`, `slowest` their extremes. Hit rates are per expert; stalls are GPU + CPU.
    `median_layer_error`: of the predicted times of single layers, unmoved by rare interruptions;
    None where the runs have other passes than the prediction.
    """

    policy: str
    repeats: int
    predicted_seconds: float
    measured_seconds: float
    fastest_seconds: float
    slowest_seconds: float
    predicted_hit_rate: float
    measured_hit_rate: float
    predicted_bytes: int
    measured_bytes: int
    predicted_stall_seconds: float
    measured_stall_seconds: float
    median_layer_error: float | None = None

    @property
    def error(self) -> float:
        """Of the predicted time; negative: it really takes longer."""
        return self.predicted_seconds / self.measured_seconds - 1.0

    @property
    def noise(self) -> float:
        """Half the spread of the measured times, relative."""
        return (self.slowest_seconds - self.fastest_seconds) / 2 / self.measured_seconds

    @property
    def hit_difference(self) -> float:
        """Measured minus predicted hit rate, in points."""
        return 100.0 * (self.measured_hit_rate - self.predicted_hit_rate)

    @property
    def bytes_difference(self) -> float:
        """Of measured to predicted bytes, relative; 0 where neither copies anything."""
        if self.predicted_bytes == self.measured_bytes:
            return 0.0
        return self.measured_bytes / max(1, self.predicted_bytes) - 1.0


def agreement(policy: str, predicted: RunLog, measured: Sequence[RunLog]) -> Agreement:
    """Predicted against repeated measured runs of the same passes."""
    expected, found = metrics(predicted), [metrics(log) for log in measured]
    seconds = [one.decode_seconds for one in found]
    return Agreement(
        policy=policy,
        repeats=len(found),
        predicted_seconds=expected.decode_seconds,
        measured_seconds=float(np.median(seconds)),
        fastest_seconds=min(seconds),
        slowest_seconds=max(seconds),
        predicted_hit_rate=expected.hit_rate_per_expert,
        measured_hit_rate=float(np.median([one.hit_rate_per_expert for one in found])),
        predicted_bytes=expected.bytes_copied,
        measured_bytes=round(float(np.median([one.bytes_copied for one in found]))),
        predicted_stall_seconds=_stall(expected),
        measured_stall_seconds=float(np.median([_stall(one) for one in found])),
        median_layer_error=_layer_error(predicted, measured),
    )


def kendall_tau(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Rank agreement, tau-b: 1 equal order, -1 reversed; NaN if one side is all equal."""
    one, other = np.asarray(predicted, np.float64), np.asarray(measured, np.float64)
    first, second = np.triu_indices(len(one), 1)
    signs = np.sign(one[first] - one[second]), np.sign(other[first] - other[second])
    untied = np.sqrt(np.count_nonzero(signs[0]) * np.count_nonzero(signs[1]))
    return float((signs[0] * signs[1]).sum() / untied) if untied else float("nan")


def smallest_gap(predicted: Sequence[float], measured: Sequence[float]) -> float | None:
    """The smallest measured gap of two policies, relative to the faster, such that all pairs at
    least so far apart are ordered right; None if already the widest is not.
    """
    pairs = []
    for (mine, real), (its, its_real) in combinations(zip(predicted, measured, strict=True), 2):
        gap = abs(real - its_real) / min(real, its_real)
        pairs.append((gap, (mine - its) * (real - its_real) > 0))
    smallest = None
    for gap, right in sorted(pairs, key=lambda pair: (-pair[0], pair[1])):
        if not right:
            break
        smallest = gap
    return smallest


def _layer_error(predicted: RunLog, measured: Sequence[RunLog]) -> float | None:
    expected, ratios = _layer_times(predicted), []
    for log in measured:
        found = _layer_times(log)
        if len(found) != len(expected):
            return None
        ratios.append(expected / np.maximum(found, 1) - 1.0)
    return float(np.median(np.concatenate(ratios)))


def _layer_times(log: RunLog) -> NDArray[np.int64]:
    counted = log.passes["pass_index"][
        ~log.passes["warmup"] & (log.passes["phase"] == DECODE_PHASE)
    ]
    layers = log.layers[log.layers["pass_index"].isin(counted)]
    return (layers["join_ns"] - layers["t0_ns"]).to_numpy(np.int64)


def _stall(one: Metrics) -> float:
    return one.gpu_stall_seconds + one.cpu_stall_seconds
