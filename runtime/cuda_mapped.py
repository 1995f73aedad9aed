"""Host memory as the GPU sees it: page-locked memory that kernels read over the link by themselves.

A small message then needs no copy engine, on which it would queue behind whole experts.
"""

import ctypes
from typing import Any

import torch

from runtime.cuda_pinned import PinnedBlock

SAME_ADDRESS = 91  # CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
PROBE = 4096


class _HostBytes:
    """Page-locked bytes under their host address, in the form in which torch takes over arrays of
    the GPU.
    """

    def __init__(self, memory: torch.Tensor) -> None:
        self._memory = memory  # kept alive by the tensor made of this
        self.__cuda_array_interface__ = {
            "shape": (memory.numel(),), "typestr": "|u1", "data": (memory.data_ptr(), False),
            "strides": None, "version": 3,
        }  # fmt: skip


def device_view(block: PinnedBlock, device: torch.device) -> torch.Tensor:
    """uint8 [size] on `device`: the bytes of the block themselves."""
    return torch.as_tensor(_HostBytes(block.memory), device=device)


def read_mapped(dst: torch.Tensor, view: torch.Tensor) -> None:
    """Queue a kernel that reads `view`, equal uint8 sizes, into `dst`. A plain copy would go to the
    copy engine.
    """
    wide = all(n % 8 == 0 for n in (view.numel(), view.data_ptr(), dst.data_ptr()))
    if wide:
        view, dst = view.view(torch.int64), dst.view(torch.int64)
    torch.add(view, 0, out=dst)


def can_map(index: int, block: PinnedBlock, device: torch.device) -> str:
    """ "" if the GPU reads `block` (at least PROBE bytes, zeros) under its host address, else why
    not.
    """
    if not _same_address(index):
        return "the driver gives host memory another address on the GPU"
    try:
        view = device_view(block, device)
        block.memory[:PROBE] = torch.arange(PROBE, dtype=torch.int64).to(torch.uint8)
        received = torch.empty(PROBE, dtype=torch.uint8, device=device)
        read_mapped(received, view[:PROBE])
        equal = torch.equal(received.cpu(), block.memory[:PROBE])
    except (RuntimeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return "" if equal else "the GPU read other bytes than the host wrote"


def _same_address(index: int) -> bool:
    try:
        driver: Any = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    value = ctypes.c_int(0)
    status = driver.cuDeviceGetAttribute(ctypes.byref(value), SAME_ADDRESS, index)
    return bool(status == 0 and value.value == 1)
