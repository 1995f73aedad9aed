"""Small messages between host and device through rings of host buffers.

A copy reads its source and writes its destination when it executes, not when it is queued. So each
buffer has the event of its last copy: it is neither refilled nor read before that.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import torch

from runtime.device import Device, DeviceError


class HostRing:
    """`size` buffers of at least `capacity` bytes; a larger message enlarges them all."""

    def __init__(self, device: Device, size: int, capacity: int, name: str) -> None:
        self._device, self._name = device, name
        self._buffers = [device.alloc_host(capacity) for _ in range(size)]
        self._events: list[Any] = [None] * size
        self._turn = -1

    def next_free(self, size: int) -> tuple[int, torch.Tensor]:
        """Number and first `size` bytes of the next buffer, after the copy that last used it."""
        if size > self._buffers[0].numel():
            self._enlarge(size)
        self._turn += 1
        place = self._turn % len(self._buffers)
        if self._events[place] is not None:
            self._device.synchronize(self._events[place])
        return place, self._buffers[place][:size]

    def in_use_until(self, place: int, event: Any) -> None:
        """The copy that ends with `event` uses the buffer."""
        self._events[place] = event

    def is_last(self, place: int, event: Any) -> bool:
        """True if the buffer was not used again since that copy."""
        return self._events[place] is event

    def buffer_name(self, place: int) -> tuple[str, int]:
        """The buffer for the hazard checker."""
        return (self._name, place)

    def _enlarge(self, size: int) -> None:
        for event in self._events:
            if event is not None:
                self._device.synchronize(event)
        self._buffers = [self._device.alloc_host(size) for _ in self._buffers]
        self._events = [None] * len(self._buffers)


class Message:
    """Bytes on their way to the host."""

    def __init__(
        self, device: Device, ring: HostRing, place: int, buffer: torch.Tensor, event: Any
    ) -> None:
        self._device, self._ring, self._place = device, ring, place
        self._buffer, self._event = buffer, event

    def read(self) -> torch.Tensor:
        """The bytes, uint8 [n]. DeviceError before they have arrived, and when the ring has come
        round.
        """
        if not self._ring.is_last(self._place, self._event):
            raise DeviceError("a message was read after its buffer was used again")
        if not self._device.done(self._event):
            raise DeviceError("a message was read before its copy had ended")
        self._device.note(None, reads=(self._ring.buffer_name(self._place),))
        return self._buffer

    def wait(self) -> torch.Tensor:
        """The bytes, once they have arrived."""
        self._device.synchronize(self._event)
        return self.read()


def send_to_host(
    device: Device,
    ring: HostRing,
    payload: torch.Tensor,
    stream: Any,
    reads: Iterable[Hashable] = (),
) -> Message:
    """Queue a copy of `payload` (device memory), which must not change before it has ended. reads:
    its name for the hazard checker.
    """
    place, buffer = ring.next_free(payload.numel() * payload.element_size())
    writes = (ring.buffer_name(place),)
    event = device.copy(buffer, payload, stream, reads, writes, timed=False)
    ring.in_use_until(place, event)
    return Message(device, ring, place, buffer, event)


def send_to_device(
    device: Device, ring: HostRing, payload: torch.Tensor, dst: torch.Tensor, stream: Any
) -> Any:
    """Queue a copy of `payload` (host memory, may change at once) to `dst`; returns its event."""

    def write(buffer: torch.Tensor) -> None:
        buffer.copy_(payload.contiguous().view(-1).view(torch.uint8))

    return write_to_device(device, ring, write, dst, stream)


def write_to_device(
    device: Device,
    ring: HostRing,
    write: Callable[[torch.Tensor], None],
    dst: torch.Tensor,
    stream: Any,
) -> Any:
    """Let `write` fill a buffer uint8 [bytes of dst] of the ring, and queue its copy to `dst`;
    returns the event.
    """
    place, buffer = ring.next_free(dst.nbytes)
    name = (ring.buffer_name(place),)
    device.note(None, writes=name)
    write(buffer)
    event = device.copy_small(dst, buffer, stream, reads=name)
    ring.in_use_until(place, event)
    return event
