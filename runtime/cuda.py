"""The device protocol on an NVIDIA GPU: torch's streams and events, page-locked host memory.

The compute stream is torch's current one, on which the model runs; all memory is allocated at the
start or used on that stream alone, so no tensor's life has to be tied to another stream.
"""

import time
from collections.abc import Callable, Hashable, Iterable
from contextlib import nullcontext, suppress
from typing import Any

import torch

from policies.errors import UserError
from runtime.cuda_clock import Anchor, CudaClock
from runtime.cuda_mapped import PROBE, can_map, device_view, read_mapped
from runtime.cuda_pinned import PAGE, PinnedBlock, PinnedMemory
from runtime.device import COMPUTE, ROUTER, DeviceError, Memory
from runtime.host_memory import available_host_bytes

KIND = "cuda"
URGENT = -1  # stream priority


class CudaEvent:
    """`begin` only for timed copies and work. `queued_ns`: nothing of it can have begun before."""

    def __init__(self, anchor: Anchor, timed: bool) -> None:
        self.anchor, self.recorded = anchor, False
        self.queued_ns = 0
        self.begin = torch.cuda.Event(enable_timing=True) if timed else None
        self.end = torch.cuda.Event(enable_timing=True)


class Cuda:
    """GPU number `index`, which becomes torch's current one. `mapped`: "" if kernels read small
    messages from host memory directly, else why they are copied.
    """

    def __init__(self, index: int = 0) -> None:
        check_present(index)
        self.torch_device = torch.device(KIND, index)
        # Triton and streams work on the thread's current device.
        torch.cuda.set_device(self.torch_device)
        torch.cuda.init()
        self.name = f"{torch.cuda.get_device_name(index)} ({self.torch_device})"
        self._index, self._closed = index, False
        self._streams: dict[str, Any] = {}
        self._views: dict[int, torch.Tensor] = {}
        try:
            self._clock = CudaClock(self.torch_device)
            self._pinned = PinnedMemory(torch.cuda.cudart())
            self.mapped = can_map(index, self._pinned.alloc(PROBE), self.torch_device)
        except RuntimeError as error:
            raise UserError(f"{self.torch_device} does not answer: {_line(error)}") from None

    def reserved_bytes(self, size: int) -> int:
        return -(-size // PAGE) * PAGE

    def alloc_host(self, size: int, unit: int = 1) -> torch.Tensor:
        return self._pinned.alloc(size, unit).memory

    def alloc_device(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        try:
            return torch.empty(shape, dtype=dtype, device=self.torch_device)
        except torch.OutOfMemoryError:
            size = torch.Size(shape).numel() * dtype.itemsize
            raise UserError(
                f"{size} bytes more do not fit {self.name}, which has "
                f"{self.memory().device_available} left; lower cache_ratio, slots or staging"
            ) from None

    def stream(self, name: str) -> Any:
        if self._closed:
            raise DeviceError("the device was closed")
        if name not in self._streams:
            if name == COMPUTE:
                self._streams[name] = torch.cuda.current_stream(self.torch_device)
            else:
                priority = URGENT if name == ROUTER else 0
                self._streams[name] = torch.cuda.Stream(self.torch_device, priority=priority)
        return self._streams[name]

    def event(self) -> CudaEvent:
        return CudaEvent(self._clock.anchor(), timed=False)

    def record(self, event: CudaEvent, stream: Any) -> None:
        event.recorded, event.queued_ns = True, self.clock_ns()
        _tried(lambda: event.end.record(stream))

    def wait(self, stream: Any, event: CudaEvent) -> None:
        if not event.recorded:
            raise DeviceError("a stream waits for an event that was never recorded")
        _tried(lambda: stream.wait_event(event.end))

    def copy(
        self,
        dst: torch.Tensor,
        src: torch.Tensor,
        stream: Any,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
        timed: bool = True,
    ) -> CudaEvent:
        into, out_of = _equal_bytes(dst, src)
        parts = self._parts(into, out_of)

        def move() -> None:
            for to, source in zip(into.split(parts), out_of.split(parts), strict=True):
                to.copy_(source, non_blocking=True)

        return self._put(stream, move, timed)

    def copy_small(
        self,
        dst: torch.Tensor,
        src: torch.Tensor,
        stream: Any,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
    ) -> CudaEvent:
        if self.mapped:
            return self.copy(dst, src, stream, timed=False)
        into, out_of = _equal_bytes(dst, src)
        block = self._block_of(out_of)
        if block.begin not in self._views:
            self._views[block.begin] = device_view(block, self.torch_device)
        first = out_of.data_ptr() - block.begin
        view = self._views[block.begin][first : first + out_of.numel()]
        return self._put(stream, lambda: read_mapped(into, view), timed=False)

    def run(
        self,
        stream: Any,
        work: Callable[[], None],
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
        timed: bool = True,
    ) -> CudaEvent:
        return self._put(stream, work, timed)

    def has_read(self, event: CudaEvent, reads: Iterable[Hashable]) -> None:
        """Only a checker wants to know."""

    def note(
        self,
        stream: torch.cuda.Stream | None,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
    ) -> None:
        """Only a checker wants to know."""

    def poison(self, tensor: torch.Tensor, stream: Any, writes: Iterable[Hashable] = ()) -> None:
        """Only a test device marks invalid memory."""

    def done(self, event: CudaEvent) -> bool:
        return bool(event.recorded and _tried(event.end.query))

    def synchronize(self, event: CudaEvent) -> None:
        if not event.recorded:
            raise DeviceError("the host waits for an event that was never recorded")
        _tried(event.end.synchronize)

    def join(self, stream: Any) -> None:
        current = torch.cuda.current_stream(self.torch_device)
        if stream != current:
            _tried(lambda: current.wait_stream(stream))

    def begin_ns(self, event: CudaEvent) -> int:
        if event.begin is None:
            return self.end_ns(event)
        return self._host_ns(event, event.begin)

    def end_ns(self, event: CudaEvent) -> int:
        return self._host_ns(event, event.end)

    def memory(self) -> Memory:
        free, _ = torch.cuda.mem_get_info(self._index)
        kept = torch.cuda.memory_reserved(self._index) - torch.cuda.memory_allocated(self._index)
        return Memory(available_host_bytes(), free + kept)

    def clock_ns(self) -> int:
        return time.monotonic_ns()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._streams, self._views = {}, {}
        # After a failed kernel nothing can be waited for; the memory is unlocked all the same.
        with suppress(RuntimeError):
            torch.cuda.synchronize(self.torch_device)
        self._pinned.close()

    def _put(self, stream: Any, work: Callable[[], Any], timed: bool) -> CudaEvent:
        event = CudaEvent(self._clock.anchor(), timed)
        current = torch.cuda.current_stream(self.torch_device)
        event.recorded, event.queued_ns = True, self.clock_ns()
        with nullcontext() if stream == current else torch.cuda.stream(stream):
            if event.begin is not None:
                event.begin.record(stream)
            _tried(work)
            event.end.record(stream)
        return event

    def _parts(self, into: torch.Tensor, out_of: torch.Tensor) -> list[int]:
        """Sizes to copy one by one, as the host's side is page-locked."""
        for side in (into, out_of):
            if side.device.type == "cpu":
                return self._block_of(side).cuts(side)
        return [into.nbytes]

    def _block_of(self, tensor: torch.Tensor) -> PinnedBlock:
        block = self._pinned.block_of(tensor)
        if block is None:
            # It would be copied through a hidden buffer, slowly, and the call would wait for it.
            raise DeviceError("a copy from or to host memory that is not page-locked")
        return block

    def _host_ns(self, event: CudaEvent, point: Any) -> int:
        at = _tried(lambda: self._clock.host_ns(point, event.anchor))
        return max(at, event.queued_ns)


def check_present(index: int) -> None:
    """UserError that says what was found unless GPU number `index` is there."""
    if torch.version.cuda is None:
        raise UserError(
            f"device={KIND}: torch {torch.__version__} is built without CUDA; install a build with "
            "it, or use device=standin"
        )
    count = torch.cuda.device_count()
    if count == 0:
        raise UserError(
            f"device={KIND}: torch {torch.__version__} (CUDA {torch.version.cuda}) sees no GPU; "
            "check that nvidia-smi shows one, or use device=standin"
        )
    if index >= count:
        found = ", ".join(f"{n}: {torch.cuda.get_device_name(n)}" for n in range(count))
        raise UserError(f"device={KIND}:{index} is not there; found {found}")


def _equal_bytes(dst: torch.Tensor, src: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    into, out_of = dst.view(-1).view(torch.uint8), src.view(-1).view(torch.uint8)
    if into.numel() != out_of.numel():
        raise DeviceError(f"copy of {out_of.numel()} bytes into {into.numel()}")
    return into, out_of


def _tried(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except DeviceError:
        raise
    except Exception as error:
        raise DeviceError(_line(error)) from error


def _line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"
