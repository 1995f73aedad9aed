"""Calibration: all that was measured of one model on one machine, and the times that follow."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from runtime.calibration_points import Point, held_out_error
from traces.measured_times import MeasuredTimes


@dataclass(frozen=True)
class Calibration:
    """`points`: measurements with noise; `times`: what simulator and policies are told; `link`:
    latency in ns and bytes per second of the fit; `levels`: factor by which experts and dense parts
    take longer, mixed as a policy mixes them, than alone; `machine`: what it ran on; `notes`:
    what is not as it will be in a real run.
    """

    points: Sequence[Point]
    times: MeasuredTimes
    link: tuple[float, float]
    levels: Mapping[str, float]
    machine: Mapping[str, str]
    notes: Sequence[str] = field(default_factory=tuple)

    def curve(self, name: str) -> list[Point]:
        """The points of one curve, by x."""
        return sorted((one for one in self.points if one.curve == name), key=lambda one: one.x)

    def errors(self) -> dict[str, float]:
        """Mean relative error at the held-out points, by curve."""
        names = dict.fromkeys(one.curve for one in self.points)
        found = {name: held_out_error(self.curve(name)) for name in names}
        return {name: error for name, error in found.items() if error is not None}

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "machine": dict(self.machine),
            "notes": list(self.notes),
            "times": asdict(self.times),
            "link": {"latency_ns": self.link[0], "bytes_per_second": self.link[1]},
            "levels": dict(self.levels),
            "held_out_errors": self.errors(),
            "points": [asdict(one) for one in self.points],
        }
