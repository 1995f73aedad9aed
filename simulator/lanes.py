"""The GPU lane and the CPU lane of one layer, from the router's end to the join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import simpy

from simulator.clock import Clock
from simulator.host import Decided
from simulator.link import UNKNOWN, Copy, Link, Process


@dataclass(frozen=True)
class LayerWork:
    """What a plan asks of the lanes. `resident_ns`: GPU time of each resident expert; `copied`:
    (copy, GPU time) of fetched and streamed experts in landing order; `cpu_ns`: all CPU experts
    together."""

    resident_ns: Sequence[int]
    copied: Sequence[tuple[Copy, int]]
    cpu_ns: int

    @property
    def gpu_ns(self) -> int:
        """Time that the GPU computes experts."""
        return sum(self.resident_ns) + sum(time for _, time in self.copied)


@dataclass
class LaneTimes:
    """Begin and end of each lane's work, UNKNOWN for a lane without work; join of both."""

    gpu_begin_ns: int = UNKNOWN
    gpu_end_ns: int = UNKNOWN
    cpu_begin_ns: int = UNKNOWN
    cpu_end_ns: int = UNKNOWN
    join_ns: int = UNKNOWN


class Lanes:
    """Runs the work of one layer at a time.

    `contention`: rate of CPU work while the link is busy, of 1024; `early`: residents do not wait
    for the plan; `serial`: GPU experts wait for the CPU's results.
    """

    def __init__(
        self,
        env: Clock,
        link: Link,
        contention: int,
        dispatch_ns: int,
        return_ns: int,
        early: bool,
        serial: bool,
    ) -> None:
        self.env = env
        self.link = link
        self.contention = contention
        self.dispatch_ns = dispatch_ns
        self.return_ns = return_ns
        self.early = early
        self.serial = serial

    def run(self, work: LayerWork, decided: Decided, times: LaneTimes) -> Process:
        """Process: begins now (t1), ends at the join; fills `times`."""
        lanes = []
        returned = None
        if work.cpu_ns > 0:
            returned = self.env.process(self._cpu(work, decided, times))
            lanes.append(returned)
        if work.resident_ns or work.copied:
            before = returned if self.serial else None
            lanes.append(self.env.process(self._gpu(work, decided, before, times)))
        yield self.env.all_of(lanes)
        times.join_ns = self.env.now_ns

    def _gpu(
        self, work: LayerWork, decided: Decided, before: simpy.Event | None, times: LaneTimes
    ) -> Process:
        if before is not None:
            yield before
        elif not self.early:
            yield decided.done
        for time_ns in work.resident_ns:
            self._begin_gpu(times)
            yield self.env.timeout(time_ns)
        if work.copied:
            yield decided.done  # only the plan tells the GPU what to expect
        for copy, time_ns in work.copied:
            yield copy.landed
            self._begin_gpu(times)
            yield self.env.timeout(time_ns)
            copy.read.succeed()
        times.gpu_end_ns = self.env.now_ns

    def _begin_gpu(self, times: LaneTimes) -> None:
        if times.gpu_begin_ns == UNKNOWN:
            times.gpu_begin_ns = self.env.now_ns

    def _cpu(self, work: LayerWork, decided: Decided, times: LaneTimes) -> Process:
        yield decided.done
        yield self.env.timeout(self.dispatch_ns)
        times.cpu_begin_ns = self.env.now_ns
        yield from self.compute(work.cpu_ns)
        times.cpu_end_ns = self.env.now_ns
        yield self.env.timeout(self.return_ns)

    def compute(self, work_ns: int) -> Process:
        """Process: ends at the first ns with 1024 * idle + q * busy >= 1024 * work."""
        left = 1024 * work_ns
        while left > 0:
            rate = self.contention if self.link.busy else 1024
            begin_ns = self.env.now_ns
            yield self.env.any_of([self.env.timeout(-(-left // rate)), self.link.changed])
            left -= rate * (self.env.now_ns - begin_ns)
