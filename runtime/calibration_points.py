"""Points: repeated measurements as medians with their noise, and curves through them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

HELD_OUT = 5  # every fifth point is kept out of the fit


@dataclass(frozen=True)
class Point:
    """`curve` at `x` (bytes, or rows): median and 10th and 90th percentile of `count`
    measurements, in ns. `held_out`: not used in the fit; `predicted_ns`: what the fit says there.
    """

    curve: str
    x: int
    median_ns: int
    low_ns: int
    high_ns: int
    count: int
    held_out: bool = False
    predicted_ns: int | None = None

    @property
    def error(self) -> float | None:
        """Relative error of the fit at this point."""
        if self.predicted_ns is None or self.median_ns <= 0:
            return None
        return abs(self.predicted_ns - self.median_ns) / self.median_ns


def point(curve: str, x: int, samples: Sequence[float]) -> Point:
    """The point of repeated measurements in ns."""
    low, median, high = np.percentile(np.asarray(samples, np.float64), [10, 50, 90])
    return Point(curve, x, round(median), round(low), round(high), len(samples))


def fit_link(points: Sequence[Point]) -> tuple[float, float, list[Point]]:
    """(latency in ns, bytes per second, points with predictions) by least squares of the relative
    error, without every fifth point from the third on.
    """
    marked = _marked(points)
    used = [one for one in marked if not one.held_out]
    size = np.array([one.x for one in used], np.float64)
    time = np.array([one.median_ns for one in used], np.float64)
    # Rows divided by the time: the error of a small copy weighs as much as that of a large one.
    design = np.stack([1.0 / time, size / time], axis=1)
    (latency, per_byte), *_ = np.linalg.lstsq(design, np.ones(len(used)), rcond=None)
    if latency < 0:
        latency, per_byte = 0.0, float((size / time).sum() / ((size / time) ** 2).sum())
    per_byte = max(float(per_byte), 1e-6)
    done = [replace(one, predicted_ns=round(latency + one.x * per_byte)) for one in marked]
    return float(latency), 1e9 / per_byte, done


def fit_rows(points: Sequence[Point]) -> tuple[tuple[int, ...], list[Point]]:
    """(rising times in ns at all points, points with predictions). Held-out points are predicted
    from their neighbours; the times given back use them as well.
    """
    marked = _marked(points)
    used = [one for one in marked if not one.held_out]
    curve = rising([one.median_ns for one in used])
    at = np.interp([one.x for one in marked], [one.x for one in used], curve)
    done = [replace(one, predicted_ns=round(time)) for one, time in zip(marked, at, strict=True)]
    times = rising([one.median_ns for one in points])
    return tuple(int(np.ceil(time)) for time in times), done


def rising(values: Sequence[float]) -> NDArray[np.float64]:
    """The non-falling sequence nearest to `values` in least squares (pool adjacent violators)."""
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, count = float(value), 1
        while pools and pools[-1][0] > mean:
            before, size = pools.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        pools.append((mean, count))
    return np.repeat([mean for mean, _ in pools], [count for _, count in pools])


def held_out_error(points: Sequence[Point]) -> float | None:
    """Mean relative error at the held-out points; None without any."""
    errors = [one.error for one in points if one.held_out and one.error is not None]
    return float(np.mean(errors)) if errors else None


def _marked(points: Sequence[Point]) -> list[Point]:
    """Every fifth point held out, never the first or the last: a curve is not asked beyond its
    ends.
    """
    last = len(points) - 1
    return [
        replace(one, held_out=0 < place < last and place % HELD_OUT == 2)
        for place, one in enumerate(points)
    ]
