"""Chooses how experts in slots are computed on a device."""

import torch
from torch.nn import functional

from runtime.device import Device
from runtime.expert_layout import ExpertLayout
from runtime.expert_math import Gating
from runtime.pace import Pace
from runtime.slot_kernels import HostLoop, MaskedLoop, SlotKernel
from runtime.slots import SlotPool


def slot_kernel(device: Device, pool: SlotPool, gating: Gating, pace: Pace) -> SlotKernel:
    """Triton's where it is installed and knows the experts, else torch's products."""
    if device.torch_device.type == "cpu":
        return HostLoop(pool, gating, pace)
    if _is_plain_silu(pool.layout, gating):
        try:
            from runtime.triton_experts import DTYPES, TritonExperts
        except ImportError:
            return MaskedLoop(pool, gating)
        if pool.layout.dtype in DTYPES:
            return TritonExperts(pool)
    return MaskedLoop(pool, gating)


def _is_plain_silu(layout: ExpertLayout, gating: Gating) -> bool:
    """The gating by what it computes: models name the same function differently."""
    if layout.biased or layout.quantised:
        return False
    gate = torch.linspace(-8.0, 8.0, 65)
    up = gate.flip(0)
    return torch.equal(gating(gate, up), functional.silu(gate) * up)
