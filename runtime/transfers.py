"""Copies of experts from the host arena into slots: the backend that `policies.session` calls.

One copy stream, first in first out. A copy waits on that stream for the last reader of its slot,
and counts as landed only once its own event has happened.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from policies.decision import STREAMED
from policies.session import NO_SLOTS
from runtime.device import COPY, Device
from runtime.host_arena import HostArena
from runtime.slots import SlotPool, slot_name

NO_LAYER = -1


class CopyRecord(NamedTuple):
    """A finished copy. Times in ns on the device's clock; `layer` is -1 while drafting."""

    copy_id: int
    expert: int
    slot: int
    generation: int
    kind: int
    pass_index: int
    layer: int
    size: int
    issue_ns: int
    begin_ns: int
    landing_ns: int


@dataclass(slots=True)
class _Copy:
    copy_id: int
    expert: int
    slot: int
    generation: int
    kind: int
    pass_index: int
    layer: int
    issue_ns: int
    event: Any = None


class Transfers:
    """`where(pass_index, layer)` before a decision tells what the copies it starts belong to."""

    def __init__(self, device: Device, arena: HostArena, pool: SlotPool) -> None:
        self._device, self._arena, self._pool = device, arena, pool
        self._stream = device.stream(COPY)
        self._waiting: deque[_Copy] = deque()  # started by the session, not yet on the stream
        self._in_flight: deque[_Copy] = deque()
        self._newest: dict[int, _Copy] = {}  # by slot: the copy whose bytes it holds or will hold
        self._unread: set[int] = set()  # staging buffers whose reader is not enqueued yet
        self._records: list[CopyRecord] = []
        self._landed: deque[CopyRecord] = deque()  # into slots, not published yet
        self._published: list[tuple[int, int]] = []
        self._count = 0
        self._pass_index, self._layer = 0, NO_LAYER

    def where(self, pass_index: int, layer: int) -> None:
        """Copies started from now on belong to this pass and layer."""
        self._pass_index, self._layer = pass_index, layer

    def start_copy(self, expert: int, slot: int, generation: int, kind: int) -> None:
        """Put a copy on the link, behind all earlier ones."""
        issued = self._device.clock_ns()
        self._waiting.append(
            _Copy(
                self._count, expert, slot, generation, kind, self._pass_index, self._layer, issued
            )
        )  # fmt: skip
        self._count += 1
        self._issue()

    def publish(self, until_ns: int) -> None:
        """Let the session know of copies that landed up to `until_ns`. One such moment serves
        everything that a decision sees; later landings are for the next one.
        """
        self._collect()
        while self._landed and self._landed[0].landing_ns <= until_ns:
            copy = self._landed.popleft()
            self._published.append((copy.slot, copy.generation))

    def published(self) -> tuple[tuple[int, int], ...]:
        """Slot and generation of what the next `landed` will return."""
        return tuple(self._published)

    def landed(self) -> tuple[np.ndarray, np.ndarray]:
        """Slots and generations, int64 [n], of the copies into slots that were published since the
        last call. DeviceError if a copy failed.
        """
        self._collect()
        if not self._published:
            return NO_SLOTS, NO_SLOTS
        arrays = np.array(self._published, np.int64).reshape(-1, 2)
        self._published = []
        return arrays[:, 0], arrays[:, 1]

    def event_of(self, slot: int, expert: int) -> Any:
        """Event after which `slot` holds the expert (flat key); its copy must have been started.

        For staging buffers ask in the order of the copies, each after `read` of the one before.
        """
        copy = self._newest.get(slot)
        if copy is None or copy.expert != expert:
            raise RuntimeError(f"slot {slot}: the copy of expert {expert} is not on the link")
        return copy.event

    def order_of(self, slot: int) -> int:
        """Number of the newest copy into `slot`: lower ones land earlier."""
        return self._newest[slot].copy_id

    def read(self, slot: int, event: Any) -> None:
        """The work that ends with `event` reads the slot; a staging buffer is then free again."""
        self.read_all((slot,), event)

    def read_all(self, slots: Iterable[int], event: Any) -> None:
        """The same for several slots that one piece of work reads."""
        for slot in slots:
            self._pool.was_read(slot, event)
            self._unread.discard(slot)
        if self._waiting:
            self._issue()

    def drain(self) -> None:
        """Wait until everything that was started has landed (logical time)."""
        while self._in_flight or self._waiting:
            if not self._in_flight:
                raise RuntimeError("a streamed copy waits for a reader that nobody enqueued")
            self._device.synchronize(self._in_flight[-1].event)
            self._collect()

    def take_records(self) -> list[CopyRecord]:
        """Copies that finished since the last call, in order."""
        self._collect()
        records, self._records = self._records, []
        return records

    def _issue(self) -> None:
        """Hand over what may go. A copy into a staging buffer must not be queued before the reader
        of the buffer's last content: the stream would have nothing to wait for.
        """
        while self._waiting and self._waiting[0].slot not in self._unread:
            copy = self._waiting.popleft()
            reader = self._pool.last_reader(copy.slot)
            if reader is not None:
                self._device.wait(self._stream, reader)
            copy.event = self._device.copy(
                self._pool.bytes_of(copy.slot),
                self._arena.bytes_of(copy.expert),
                self._stream,
                writes=(slot_name(copy.slot),),
            )
            if copy.kind == STREAMED:
                self._unread.add(copy.slot)
            self._newest[copy.slot] = copy
            self._in_flight.append(copy)

    def _collect(self) -> None:
        device = self._device
        while self._in_flight and device.done(self._in_flight[0].event):
            copy = self._in_flight.popleft()
            record = self._record(copy)
            self._records.append(record)
            if copy.kind != STREAMED:
                self._landed.append(record)

    def _record(self, copy: _Copy) -> CopyRecord:
        begin, end = self._device.begin_ns(copy.event), self._device.end_ns(copy.event)
        size = self._arena.layout.expert_bytes
        return CopyRecord(
            copy.copy_id, copy.expert, copy.slot, copy.generation, copy.kind, copy.pass_index,
            copy.layer, size, copy.issue_ns, begin, end,
        )  # fmt: skip
