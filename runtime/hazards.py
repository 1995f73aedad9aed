"""Happens-before checker: finds conflicting accesses that no event orders, whatever the timing was.

One vector clock per stream and one for the host, joined where an order is established: work comes
after what the host knew when it enqueued it, `wait` after the event, `synchronize` and a true
`done` let the host know. Comparing outputs instead misses such races: a slow link hides them all.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

HOST = "host"

Clock = dict[str, int]


@dataclass(frozen=True)
class Access:
    """`tick` counts the work of `stream`; the first is 1."""

    stream: str
    tick: int
    label: str


@dataclass(frozen=True)
class Hazard:
    """Two accesses to one buffer, at least one a write, that may overlap or swap."""

    buffer: Hashable
    kind: str
    earlier: Access
    later: Access

    def __str__(self) -> str:
        return (
            f"{self.kind} on {self.buffer}: {self.later.label} ({self.later.stream}) is not "
            f"ordered after {self.earlier.label} ({self.earlier.stream})"
        )


class HazardChecker:
    """Told of every piece of work in the order in which the host enqueues it."""

    def __init__(self) -> None:
        self.hazards: list[Hazard] = []
        self.checked = 0
        self._clocks: dict[str, Clock] = {HOST: {}}
        self._events: WeakKeyDictionary[object, Clock] = WeakKeyDictionary()
        self._last_write: dict[Hashable, Access] = {}
        self._reads: dict[Hashable, dict[str, Access]] = {}

    def work(
        self,
        stream: str,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
        label: str = "",
    ) -> None:
        """One piece of work was put on `stream`."""
        clock = self._clock_of(stream)
        clock[stream] = clock.get(stream, 0) + 1
        access = Access(stream, clock[stream], label or f"work {clock[stream]}")
        for buffer in reads:
            self._check(clock, buffer, "read after write", self._last_write.get(buffer), access)
            self._reads.setdefault(buffer, {})[stream] = access
        for buffer in writes:
            self._check(clock, buffer, "write after write", self._last_write.get(buffer), access)
            for read in self._reads.pop(buffer, {}).values():
                self._check(clock, buffer, "write after read", read, access)
            self._last_write[buffer] = access

    def also_reads(self, event: object, stream: str, reads: Iterable[Hashable]) -> None:
        """The work that `event` ends, put on `stream` earlier, reads these buffers too."""
        clock = self._events[event]
        access = Access(stream, clock[stream], f"work {clock[stream]}")
        for buffer in reads:
            self._check(clock, buffer, "read after write", self._last_write.get(buffer), access)
            known = self._reads.setdefault(buffer, {}).get(stream)
            if known is None or known.tick < access.tick:
                self._reads[buffer][stream] = access

    def record(self, event: object, stream: str) -> None:
        """`event` was recorded on `stream`."""
        self._events[event] = dict(self._clock_of(stream))

    def wait(self, stream: str, event: object) -> None:
        """`stream` will wait for `event`. An event never recorded orders nothing."""
        _join(self._clock_of(stream), self._events.get(event, {}))

    def host_saw(self, event: object) -> None:
        """The host knows that `event` has happened."""
        _join(self._clocks[HOST], self._events.get(event, {}))

    def _clock_of(self, stream: str) -> Clock:
        clock = self._clocks.setdefault(stream, {})
        _join(clock, self._clocks[HOST])
        return clock

    def _check(
        self, clock: Clock, buffer: Hashable, kind: str, earlier: Access | None, later: Access
    ) -> None:
        self.checked += 1
        if earlier is None or earlier is later:
            return
        if clock.get(earlier.stream, 0) < earlier.tick:
            self.hazards.append(Hazard(buffer, kind, earlier, later))


def _join(clock: Clock, other: Clock) -> None:
    for stream, tick in other.items():
        if clock.get(stream, 0) < tick:
            clock[stream] = tick
