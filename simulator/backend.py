"""LinkBackend: Session's backend in the simulator. It notes copies; the driver issues them."""

from __future__ import annotations

from collections import deque
from itertools import count

import numpy as np

from policies.decision import STREAMED
from simulator.clock import Clock
from simulator.link import Copy
from traces.runlog_schema import NO_LAYER

NO_GENERATION = -1


class LinkBackend:
    """`snapshot_ns`: the time up to which landings count; `pass_index`, `layer`: where copies
    belong.

    `filling`: flat expert -> its copy into a slot, until Session has been told of the landing;
    `started`: copies noted and not yet taken, in link order.
    """

    def __init__(self, env: Clock, slots: int, staging: int) -> None:
        self.env = env
        self.slots = slots
        self.staging = staging
        self.snapshot_ns = 0
        self.pass_index = 0
        self.layer = NO_LAYER
        self.filling: dict[int, Copy] = {}
        self._in_flight: deque[Copy] = deque()
        self.started: list[Copy] = []
        self._last_in_buffer: dict[int, Copy] = {}
        self._numbers = count()

    def start_copy(self, expert: int, slot: int, generation: int, kind: int) -> None:
        """See policies.session.Backend."""
        copy = Copy(
            next(self._numbers), expert, slot, generation, kind, self.pass_index, self.layer,
            self.env.event(), self.env.event(),
        )  # fmt: skip
        if kind == STREAMED:
            before = self._last_in_buffer.get(slot)
            copy.buffer_free = before.read if before else None
            self._last_in_buffer[slot] = copy
        else:
            self.filling[expert] = copy
            self._in_flight.append(copy)
        self.started.append(copy)

    def start_stream(self, expert: int, place: int) -> None:
        """Stream number `place` of a layer, outside the session's generations (prefill)."""
        self.start_copy(expert, self.slots + place % self.staging, NO_GENERATION, STREAMED)

    def landed(self) -> tuple[np.ndarray, np.ndarray]:
        """See policies.session.Backend: landings up to snapshot_ns."""
        copies = []
        while self._in_flight and self._in_flight[0].landed_by(self.snapshot_ns):
            copy = self._in_flight.popleft()
            del self.filling[copy.expert]
            copies.append(copy)
        return (
            np.array([copy.slot for copy in copies], np.int64),
            np.array([copy.generation for copy in copies], np.int64),
        )

    def take_started(self) -> list[Copy]:
        """Copies noted since the last call, in link order."""
        started, self.started = self.started, []
        return started

    def forget(self) -> None:
        """A cold start: landings of copies under way are no longer of interest."""
        self.filling.clear()
        self._in_flight.clear()
