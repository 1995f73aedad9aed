"""The part of a run that a Perfetto trace shows, and how intervals are laid on tracks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import pandas as pd

from policies.errors import UserError
from simulator.timeline import Interval, pass_lanes
from traces.runlog import RunLog


class Timed(Protocol):
    """Anything with a begin and an end in ns."""

    @property
    def begin_ns(self) -> int: ...

    @property
    def end_ns(self) -> int: ...


One = TypeVar("One", bound=Timed)


@dataclass(frozen=True)
class Span:
    """Passes first..last of a run, both included; its time begins at 0 with the first."""

    log: RunLog
    first: int
    last: int

    def __post_init__(self) -> None:
        if self.passes.empty:
            last = self.log.passes["pass_index"].max()
            raise UserError(
                f"passes {self.first} to {self.last}: the run has none of them, its last is {last}"
            )

    @cached_property
    def passes(self) -> pd.DataFrame:
        """Rows of the passes, in order."""
        passes = self.log.passes
        return passes[passes["pass_index"].between(self.first, self.last)]

    @cached_property
    def begin_ns(self) -> int:
        """The moment of the run that is 0 in the trace."""
        return int(self.passes["begin_ns"].min())

    @cached_property
    def end_ns(self) -> int:
        """When the last pass ended."""
        return int(self.passes["end_ns"].max())

    @cached_property
    def copies(self) -> pd.DataFrame:
        """Copies on the link during these passes, by time."""
        copies = self.log.copies
        inside = (copies["landing_ns"] > self.begin_ns) & (copies["begin_ns"] < self.end_ns)
        return copies[inside].sort_values(["begin_ns", "copy_id"])

    @cached_property
    def work(self) -> dict[int, list[Interval]]:
        """Pass -> intervals of the lanes gpu, cpu and host."""
        return {
            int(index): [one for one in pass_lanes(self.log, int(index)) if one.lane != "link"]
            for index in self.passes["pass_index"]
        }


def stacked(intervals: Iterable[One]) -> Iterator[tuple[int, One]]:
    """(row, interval) in order of begin: the first row that is free by then. Slices of one track
    must not overlap in part, which measured intervals may."""
    ends: list[int] = []
    for one in sorted(intervals, key=lambda one: (one.begin_ns, one.end_ns)):
        row = next((row for row, end in enumerate(ends) if end <= one.begin_ns), len(ends))
        ends[row : row + 1] = [one.end_ns]
        yield row, one
