"""The stand-in: an accelerator made of worker threads, to build, test and study on a CPU.

Streams are threads, copies really move bytes at the rate of a hardware profile, new and overwritten
memory holds NaN. It shows that order and bytes are right; its speed is that of the profile.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping

import torch

from policies.errors import UserError
from runtime.device import COMPUTE, COPY, ROUTER, DeviceError, Memory
from runtime.failures import first_line
from runtime.hazards import HOST, HazardChecker
from runtime.host_memory import available_host_bytes
from runtime.standin_link import Link, PacedLink
from runtime.standin_stream import InlineStream, StandInEvent, StandInStream

PAGE = 4096

Stream = InlineStream | StandInStream


class StandIn:
    """`links` gives the rate of copies on a stream by its name; others are as fast as memory.

    inline: streams without a thread of their own, see InlineStream. device_bytes: size of the
    pretended device memory, None for no limit beyond the host's.
    """

    name = "stand-in"
    torch_device = torch.device("cpu")

    def __init__(
        self,
        links: Mapping[str, Link],
        checker: HazardChecker | None = None,
        device_bytes: int | None = None,
        inline: frozenset[str] = frozenset(),
    ) -> None:
        self.checker = checker
        self._links, self._inline = dict(links), inline
        self._device_bytes, self._allocated = device_bytes, 0
        self._abort = threading.Event()
        self._streams: dict[str, Stream] = {}
        self._paced: dict[str, PacedLink] = {}
        self._held_ns = 0

    def reserved_bytes(self, size: int) -> int:
        return -(-size // PAGE) * PAGE

    def alloc_host(self, size: int, unit: int = 1) -> torch.Tensor:
        return torch.empty(size, dtype=torch.uint8)

    def alloc_device(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        size = torch.Size(shape).numel() * dtype.itemsize
        if self._device_bytes is not None and self._allocated + size > self._device_bytes:
            raise UserError(
                f"{size} bytes more do not fit the stand-in's {self._device_bytes}, of which "
                f"{self._allocated} are used; lower cache_ratio or staging"
            )
        self._allocated += size
        tensor = torch.empty(shape, dtype=dtype)
        _bytes(tensor).fill_(0xFF)
        return tensor

    def stream(self, name: str) -> Stream:
        if self._abort.is_set():
            raise DeviceError("the device was closed")
        if name not in self._streams:
            kind = InlineStream if name in self._inline else StandInStream
            self._streams[name] = kind(name)
            self._paced[name] = PacedLink(self._links.get(name, Link()), self._abort)
        return self._streams[name]

    def event(self) -> StandInEvent:
        return StandInEvent()

    def record(self, event: StandInEvent, stream: Stream) -> None:
        event.recorded = True
        if self.checker is not None:
            self.checker.record(event, stream.name)
        stream.record(event)

    def wait(self, stream: Stream, event: StandInEvent) -> None:
        if not event.recorded:
            # A real device would go on at once; that is never what the caller meant.
            raise DeviceError(f"stream {stream.name} waits for an event that was never recorded")
        if self.checker is not None:
            self.checker.wait(stream.name, event)
        stream.wait(event)

    def copy(
        self,
        dst: torch.Tensor,
        src: torch.Tensor,
        stream: Stream,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
        timed: bool = True,
    ) -> StandInEvent:
        into, out_of = _bytes(dst), _bytes(src)
        if into.numel() != out_of.numel():
            raise DeviceError(f"copy of {out_of.numel()} bytes into {into.numel()}")
        paced, issued = self._paced[stream.name], self.clock_ns()
        if stream.name == COPY:
            issued = max(issued, self._held_ns)

        def move() -> int:
            return paced.move(into, out_of, max(issued, stream.ready_ns))

        return self._put(stream, move, reads, writes, "copy")

    def copy_small(
        self,
        dst: torch.Tensor,
        src: torch.Tensor,
        stream: Stream,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
    ) -> StandInEvent:
        return self.copy(dst, src, stream, reads, writes)

    def hold_copies(self, until_ns: int) -> None:
        """Expert copies put here from now on begin at `until_ns` at the earliest: the host that
        decided them is pretended to be busy until then.
        """
        self._held_ns = until_ns

    def link_busy(self, since_ns: int) -> list[tuple[int, int]]:
        """(begin, end) of the expert copies that end after `since_ns` and have begun, in order."""
        return self._paced[COPY].busy(since_ns) if COPY in self._paced else []

    def run(
        self,
        stream: Stream,
        work: Callable[[], None],
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
        timed: bool = True,
    ) -> StandInEvent:
        return self._put(stream, work, reads, writes, "run")

    def has_read(self, event: StandInEvent, reads: Iterable[Hashable]) -> None:
        if self.checker is not None:
            self.checker.also_reads(event, event.stream, reads)

    def note(
        self,
        stream: Stream | None,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
    ) -> None:
        if self.checker is not None:
            self.checker.work(HOST if stream is None else stream.name, reads, writes, "host")

    def poison(self, tensor: torch.Tensor, stream: Stream, writes: Iterable[Hashable] = ()) -> None:
        self._put(stream, lambda: _fill(tensor), (), writes, "poison")

    def done(self, event: StandInEvent) -> bool:
        if not event.happened:
            return False
        self._seen(event)
        return True

    def synchronize(self, event: StandInEvent) -> None:
        if not event.recorded:
            raise DeviceError("the host waits for an event that was never recorded")
        event.wait()
        self._seen(event)

    def join(self, stream: Stream) -> None:
        # The host must wait here because its own tensors are the device's. The checker is not told:
        # on an accelerator the host would go on, and must be safe without this wait.
        event = StandInEvent()
        stream.record(event)
        event.wait()
        if event.error is not None:
            raise _failed(event.error)

    def begin_ns(self, event: StandInEvent) -> int:
        return event.begin_ns

    def end_ns(self, event: StandInEvent) -> int:
        return event.end_ns

    def memory(self) -> Memory:
        host = available_host_bytes()
        device = host if self._device_bytes is None else self._device_bytes - self._allocated
        return Memory(host, device, shared=self._device_bytes is None)

    def clock_ns(self) -> int:
        return time.monotonic_ns()

    def close(self) -> None:
        self._abort.set()
        for stream in self._streams.values():
            stream.stop()
        stuck = [name for name, stream in self._streams.items() if not stream.join()]
        self._streams = {}
        if stuck:
            raise DeviceError(f"streams still busy after 5 s: {', '.join(stuck)}")

    def _put(
        self,
        stream: Stream,
        work: Callable[[], int | None],
        reads: Iterable[Hashable],
        writes: Iterable[Hashable],
        label: str,
    ) -> StandInEvent:
        event = StandInEvent()
        event.recorded, event.stream = True, stream.name
        if self.checker is not None:
            self.checker.work(stream.name, reads, writes, label)
            self.checker.record(event, stream.name)
        stream.put(work, event)
        return event

    def _seen(self, event: StandInEvent) -> None:
        if event.error is not None:
            raise _failed(event.error)
        if self.checker is not None:
            self.checker.host_saw(event)


def standin(
    bytes_per_second: float | None,
    latency_ns: int,
    checker: HazardChecker | None = None,
    early: bool = False,
) -> StandIn:
    """A stand-in whose host-to-device link has this rate.

    The caller's thread is the GPU lane: with few cores every hand-over between threads costs more
    than a layer, and only link and CPU lane have to run beside it. early: residents run while the
    caller decides, so the GPU lane has a thread of its own.
    """
    link = Link(bytes_per_second, latency_ns)
    inline = frozenset({ROUTER}) if early else frozenset({COMPUTE, ROUTER})
    return StandIn({COPY: link}, checker, inline=inline)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype is torch.uint8 and tensor.dim() == 1 and tensor.is_contiguous():
        return tensor
    return tensor.view(-1).view(torch.uint8)


def _fill(tensor: torch.Tensor) -> None:
    _bytes(tensor).fill_(0xFF)


def _failed(error: BaseException) -> DeviceError:
    return error if isinstance(error, DeviceError) else DeviceError(first_line(error))
