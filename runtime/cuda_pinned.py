"""Page-locked host memory, exactly as much as was asked for.

torch's own pinned allocator rounds each block up to a power of two: 9 MiB experts would take 16.
"""

import math
import mmap
from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import Any

import torch

from policies.errors import UserError
from runtime.device import DeviceError

PAGE = mmap.PAGESIZE
CHUNK = 2**30  # page-locked at a time: a limit of the system is met early, with a number
SUCCESS = 0
DEFAULT_FLAGS = 0  # with one address space for host and device this maps the memory for both
GIB = 2**30


@dataclass(frozen=True)
class PinnedBlock:
    """`memory` uint8 [size] at address `begin`; registered in pieces of `chunk` bytes. The driver
    may refuse a copy that crosses from one to the next, so such copies are cut there.
    """

    memory: torch.Tensor
    begin: int
    chunk: int

    def cuts(self, tensor: torch.Tensor) -> list[int]:
        """Sizes in bytes of the parts of a contiguous tensor within it that lie in one piece."""
        first, left, sizes = tensor.data_ptr() - self.begin, tensor.nbytes, []
        while left > 0:
            sizes.append(min(left, self.chunk - first % self.chunk))
            first, left = first + sizes[-1], left - sizes[-1]
        return sizes


class PinnedMemory:
    """Blocks stay where they are until `close`. `runtime`: `torch.cuda.cudart()`."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._blocks: list[PinnedBlock] = []
        self._registered: list[int] = []

    def alloc(self, size: int, unit: int = 1) -> PinnedBlock:
        """A block of zeros whose pieces end at multiples of `unit`; UserError if that cannot be
        had.
        """
        whole = max(PAGE, -(-size // PAGE) * PAGE)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        try:
            pages = mmap.mmap(-1, whole, flags=flags)
        except OSError as error:
            raise UserError(
                f"{size / GIB:.2f} GiB of host memory cannot be had ({error}); use a smaller "
                "model, or close other programs"
            ) from None
        memory = torch.frombuffer(pages, dtype=torch.uint8)
        # Touched by all of torch's threads: page-locking alone would do it with one.
        memory.zero_()
        step = math.lcm(unit, PAGE)
        chunk = max(step, CHUNK // step * step)
        block = PinnedBlock(memory[:size], memory.data_ptr(), chunk)
        for done in range(0, whole, chunk):
            self._register(block.begin + done, min(chunk, whole - done), done, whole)
        insort(self._blocks, block, key=lambda one: one.begin)
        return block

    def block_of(self, tensor: torch.Tensor) -> PinnedBlock | None:
        """The block that holds all of a contiguous tensor, if there is one."""
        address = tensor.data_ptr()
        place = bisect_right(self._blocks, address, key=lambda one: one.begin) - 1
        if place < 0:
            return None
        block = self._blocks[place]
        return block if address + tensor.nbytes <= block.begin + block.memory.nbytes else None

    def close(self) -> None:
        """Unlock everything; DeviceError if that fails. May be called twice."""
        statuses = [self._runtime.cudaHostUnregister(address) for address in self._registered]
        failed = [status for status in statuses if int(status) != SUCCESS]
        self._registered, self._blocks = [], []
        if failed:
            raise DeviceError(f"unlocking host memory failed: {self._text(failed[0])}")

    def _register(self, address: int, size: int, done: int, whole: int) -> None:
        status = self._runtime.cudaHostRegister(address, size, DEFAULT_FLAGS)
        if int(status) != SUCCESS:
            raise UserError(
                f"page-locking host memory failed after {done / GIB:.2f} of {whole / GIB:.2f} GiB "
                f"({self._text(status)}); use a smaller model, free host memory, or raise the "
                "limit of locked memory (ulimit -l)"
            )
        self._registered.append(address)

    def _text(self, status: Any) -> str:
        return f"CUDA error {int(status)}: {self._runtime.cudaGetErrorString(status)}"
