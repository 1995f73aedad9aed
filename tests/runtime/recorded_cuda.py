"""A record of torch.cuda's calls that computes on the CPU: it shows in which order `runtime.cuda`
calls what, and nothing about a GPU.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from runtime import cuda
from runtime.cuda import Cuda
from runtime.cuda_pinned import PinnedBlock

GIB = 2**30


class RecordedRuntime:
    """Stands for torch.cuda.cudart(): remembers calls, fails at the call with number `bad`."""

    def __init__(self, bad: int = -1) -> None:
        self.calls: list[tuple[str, int, int]] = []
        self.bad = bad

    def _status(self) -> int:
        return 2 if len(self.calls) - 1 == self.bad else 0

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:
        self.calls.append(("register", address, size))
        return self._status()

    def cudaHostUnregister(self, address: int) -> int:
        self.calls.append(("unregister", address, 0))
        return self._status()

    def cudaGetErrorString(self, status: int) -> str:
        return "out of memory"


class RecordedStream:
    def __init__(self, record: "CudaRecord", number: int) -> None:
        self.record_, self.number = record, number

    def wait_event(self, event: "RecordedEvent") -> None:
        self.record_.calls.append(("wait", self.number, event))

    def wait_stream(self, stream: "RecordedStream") -> None:
        self.record_.calls.append(("wait stream", self.number, stream.number))


class RecordedEvent:
    def __init__(self, record: "CudaRecord") -> None:
        self.record_, self.at_ns, self.stream = record, 0, -1

    def record(self, stream: RecordedStream) -> None:
        self.at_ns, self.stream = time.monotonic_ns(), stream.number
        self.record_.calls.append(("record", stream.number, self))

    def synchronize(self) -> None:
        self.record_.calls.append(("host waits", self.stream, self))

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: "RecordedEvent") -> float:
        return (end.at_ns - self.at_ns) / 1e6


class CudaRecord:
    """`calls`: (what, number of the stream, with what); stream 0 is torch's current one."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, Any]] = []
        self.runtime = RecordedRuntime()
        self.streams = [RecordedStream(self, 0)]
        self.current = self.streams[0]

    def stream(self, device: Any, priority: int = 0) -> RecordedStream:
        self.streams.append(RecordedStream(self, len(self.streams)))
        return self.streams[-1]

    @contextmanager
    def on(self, stream: RecordedStream) -> Iterator[None]:
        before, self.current = self.current, stream
        yield
        self.current = before


class RecordedCuda(Cuda):
    """Says which copies it was asked for, and keeps its tensors on the CPU, so that page-locked
    memory can be told from others only where one side is surely the host's.
    """

    def __init__(self, record: CudaRecord, all_on_host: bool = False) -> None:
        super().__init__()
        self.record_, self.torch_device = record, torch.device("cpu")
        self._all_on_host = all_on_host

    def _parts(self, into: torch.Tensor, out_of: torch.Tensor) -> list[int]:
        return super()._parts(into, out_of) if self._all_on_host else [into.nbytes]

    def copy(self, dst: torch.Tensor, src: torch.Tensor, stream: Any, *others: Any, **named: Any):
        self.record_.calls.append(("copy", stream.number, dst.nbytes))
        return super().copy(dst, src, stream, *others, **named)


@pytest.fixture
def cuda_record(monkeypatch: pytest.MonkeyPatch) -> CudaRecord:
    """torch.cuda replaced by a record, for the length of a test."""
    record = CudaRecord()
    replaced = {
        "device_count": lambda: 1,
        "set_device": lambda device: None,
        "init": lambda: None,
        "get_device_name": lambda index: "Recorded",
        "Stream": record.stream,
        "Event": lambda enable_timing: RecordedEvent(record),
        "current_stream": lambda device: record.current,
        "stream": record.on,
        "cudart": lambda: record.runtime,
        "mem_get_info": lambda index: (16 * GIB, 24 * GIB),
        "memory_reserved": lambda index: 0,
        "memory_allocated": lambda index: 0,
        "synchronize": lambda device: record.calls.append(("device waits", 0, None)),
    }
    for name, function in replaced.items():
        monkeypatch.setattr(torch.cuda, name, function)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    return record


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if kernels could read host memory."""
    monkeypatch.setattr(cuda, "can_map", lambda index, block, device: "")

    def view(block: PinnedBlock, device: torch.device) -> torch.Tensor:
        return block.memory

    monkeypatch.setattr(cuda, "device_view", view)
