"""Whether a calibration can be trusted: the spread of its samples, and who else was at work."""

import os
from collections.abc import Sequence

from runtime.calibration_points import Point

WIDE = 0.5  # of the median, between the 10th and the 90th percentile
MANY = 0.1  # of all points
BUSY = 0.5  # of the cores at work before it began
MILLION = 1e6
CORES = os.cpu_count() or 1


def noise_warnings(points: Sequence[Point], load_before: float, cores: int = CORES) -> list[str]:
    """In plain words what makes the times doubtful; empty if nothing does. `load_before`: the load
    average before measuring began."""
    found = []
    repeated = [one for one in points if one.count > 1]
    wide = [one for one in repeated if spread(one) > WIDE]
    if len(wide) > MANY * len(repeated):
        worst = max(wide, key=spread)
        found.append(
            f"{len(wide)} of {len(repeated)} points vary by more than {WIDE:.0%} of their median "
            f"(10th to 90th percentile); worst: {worst.curve} at {worst.x}, median "
            f"{worst.median_ns / MILLION:.3f} ms, {worst.low_ns / MILLION:.3f} to "
            f"{worst.high_ns / MILLION:.3f} ms"
        )
    if load_before > BUSY * cores:
        found.append(
            f"the load average was {load_before:.1f} on {cores} cores before measuring began: "
            "others were at work"
        )
    if found:
        found.append(
            "do not trust these times: close other programs and calibrate again, or take larger "
            "repeats= and passes="
        )
    return [f"warning: {line}" for line in found]


def spread(one: Point) -> float:
    """Width of the middle 80 % of the samples, as a share of their median."""
    return (one.high_ns - one.low_ns) / max(1, one.median_ns)
