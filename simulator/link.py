"""The host-to-device link: one copy at a time, first in, first out."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import simpy

from simulator.clock import Clock

Process = Generator[simpy.Event, Any, None]
UNKNOWN = -1


@dataclass(eq=False)
class Copy:
    """One expert on its way; times in ns, UNKNOWN until they are known.

    `number` counts copies in issue order. `buffer_free`: the expert that sat in the staging buffer
    before has been computed; `read`: this one has been.
    """

    number: int
    expert: int
    slot: int
    generation: int
    kind: int
    pass_index: int
    layer: int
    landed: simpy.Event
    read: simpy.Event
    buffer_free: simpy.Event | None = None
    issue_ns: int = field(default=UNKNOWN)
    begin_ns: int = field(default=UNKNOWN)
    landing_ns: int = field(default=UNKNOWN)

    def landed_by(self, time_ns: int) -> bool:
        """True if all bytes are there at `time_ns`: times are compared, never event order."""
        return UNKNOWN < self.landing_ns <= time_ns


class Link:
    """`busy`: bytes move now; `changed` fires, and is replaced, whenever that changes."""

    def __init__(self, env: Clock, duration_ns: int, on_landing: Callable[[Copy], None]) -> None:
        self.env = env
        self.duration_ns = duration_ns
        self.busy = False
        self.changed = env.event()
        self._on_landing = on_landing
        self._queue = simpy.Store(env)
        env.process(self._run())

    def issue(self, copy: Copy) -> None:
        """Put a copy at the end of the queue, now."""
        copy.issue_ns = self.env.now_ns
        self._queue.put(copy)

    def _run(self) -> Process:
        while True:
            copy: Copy = yield self._queue.get()
            if copy.buffer_free is not None:
                # Copies behind wait too: the link does not overtake.
                yield copy.buffer_free
            copy.begin_ns = self.env.now_ns
            copy.landing_ns = copy.begin_ns + self.duration_ns
            self._set_busy(True)
            yield self.env.timeout(self.duration_ns)
            self._set_busy(False)
            copy.landed.succeed()
            self._on_landing(copy)

    def _set_busy(self, busy: bool) -> None:
        self.busy = busy
        if self.changed.callbacks:  # most copies move while nobody listens
            self.changed.succeed()
            self.changed = self.env.event()
