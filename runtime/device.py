"""What the engine asks of a machine with an accelerator. Nothing else in the runtime names one.

Streams run their work first in, first out; events order streams among each other. All calls come
from the one thread that drives the engine.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

COMPUTE = "compute"  # the stream on which the model's own forward runs
COPY = "copy"  # host to device; one stream, so that copies stay in the order of their issue
ROUTER = "router"  # the small message from device to host in every layer


class DeviceError(RuntimeError):
    """Work on a stream failed, or the device is closed. The message is one line."""


@dataclass(frozen=True)
class Memory:
    """Bytes that can still be allocated. shared: both are the same memory."""

    host_available: int
    device_available: int
    shared: bool = False


class Device(Protocol):
    """A stream and an event are opaque objects of the device that made them.

    reads, writes: names of buffers that the work touches. A real device ignores them; the stand-in
    hands them to its hazard checker. timed: False where nobody will ask when the work began, which
    spares a GPU an event.
    """

    @property
    def name(self) -> str:
        """For run logs."""

    @property
    def torch_device(self) -> torch.device:
        """Where device tensors live."""

    def reserved_bytes(self, size: int) -> int:
        """What the host allocator really takes for one block of `size` bytes."""

    def alloc_host(self, size: int, unit: int = 1) -> torch.Tensor:
        """uint8 [size], page-locked where the device copies from such memory only at full speed.

        unit: copies that cross no multiple of so many bytes are never cut. UserError if so much
        cannot be had.
        """

    def alloc_device(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Uninitialised."""

    def stream(self, name: str) -> Any:
        """The stream of this name, made at the first call."""

    def event(self) -> Any:
        """An event that was not recorded yet."""

    def record(self, event: Any, stream: Any) -> None:
        """The event happens once all earlier work of `stream` is finished."""

    def wait(self, stream: Any, event: Any) -> None:
        """Later work of `stream` starts after `event`, which must have been recorded. The caller
        does not wait.
        """

    def copy(
        self,
        dst: torch.Tensor,
        src: torch.Tensor,
        stream: Any,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
        timed: bool = True,
    ) -> Any:
        """Copy equal numbers of bytes between contiguous tensors; returns the event of its end.

        Until then `dst` holds neither the old nor the new bytes.
        """

    def copy_small(
        self,
        dst: torch.Tensor,
        src: torch.Tensor,
        stream: Any,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
    ) -> Any:
        """Like `copy`, for a few kilobytes from `alloc_host` memory that need not queue behind the
        large copies of other streams. `src` keeps its content until the event.
        """

    def run(
        self,
        stream: Any,
        work: Callable[[], None],
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
        timed: bool = True,
    ) -> Any:
        """Do `work` on `stream`; returns the event of its end."""

    def has_read(self, event: Any, reads: Iterable[Hashable]) -> None:
        """The work of a `run` event has read these too, which was not known when it was queued."""

    def note(
        self,
        stream: Any | None,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
    ) -> None:
        """The caller's own operations on `stream`, None for the host, touch these buffers now."""

    def poison(self, tensor: torch.Tensor, stream: Any, writes: Iterable[Hashable] = ()) -> None:
        """The content of `tensor` is no longer valid; a test device fills it with NaN."""

    def done(self, event: Any) -> bool:
        """Has the event happened? DeviceError if the work before it failed."""

    def synchronize(self, event: Any) -> None:
        """Wait on the host until the event has happened; DeviceError if work before it failed."""

    def join(self, stream: Any) -> None:
        """The caller's next tensor operations come after the work of `stream`. Orders nothing else:
        on an accelerator the host goes on at once.
        """

    def begin_ns(self, event: Any) -> int:
        """When the work of a timed `copy` or `run` event began, on `clock_ns`; only after it is
        done.
        """

    def end_ns(self, event: Any) -> int:
        """When the event happened, on `clock_ns`; only after it is done."""

    def memory(self) -> Memory:
        """What is available now."""

    def clock_ns(self) -> int:
        """Nanoseconds of a clock that never goes back."""

    def close(self) -> None:
        """Stop all streams, dropping work that has not started. May be called twice."""
