"""Slots filled and read again and again in random order: does a reader see another's bytes?"""

import random
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from policies.decision import DEMAND
from runtime.device import COMPUTE, Device
from runtime.expert_layout import ExpertLayout
from runtime.host_arena import HostArena
from runtime.slots import SlotPool, slot_name
from runtime.transfers import Transfers

WORD = torch.int64


@dataclass(frozen=True)
class Reuse:
    """`wrong`: reads that saw at least one word of another expert."""

    fills: int
    reads: int
    wrong: int


class ForgetfulPool(SlotPool):
    """Lets a slot be overwritten while it is read: the control that shows that a check bites."""

    def last_reader(self, slot: int) -> Any:
        """Nobody."""
        return None


def reuse_slots(
    device: Device,
    fills: int,
    seed: int = 0,
    slots: int = 3,
    expert_kib: int = 192,
    pool_type: type[SlotPool] = SlotPool,
) -> Reuse:
    """Experts of one repeated number each, so that a single foreign word shows. Leaves the device
    open.
    """
    layout = ExpertLayout(2, 8, 64, expert_kib * 1024 // (3 * 64 * 4), torch.float32)
    rows = device.alloc_host(layout.total * layout.row_bytes, layout.row_bytes)
    arena = HostArena(layout, rows.view(layout.total, layout.row_bytes))
    for expert in range(layout.total):
        arena.bytes_of(expert).view(WORD).fill_(expert)
    pool = pool_type(layout, slots, 0, device)
    transfers, compute = Transfers(device, arena, pool), device.stream(COMPUTE)
    wrong = device.alloc_device((1,), torch.int64)
    choose, reads = random.Random(seed), 0

    def forget() -> None:
        wrong.zero_()

    event = device.run(compute, forget)
    for number in range(fills):
        expert, slot = choose.randrange(layout.total), choose.randrange(slots)
        transfers.start_copy(expert, slot, number, DEMAND)
        device.wait(compute, transfers.event_of(slot, expert))
        for _ in range(choose.randrange(1, 4)):
            look = partial(_look, wrong, pool.bytes_of(slot).view(WORD), expert)
            event = device.run(compute, look, reads=(slot_name(slot),))
            transfers.read(slot, event)
            reads += 1
        if choose.random() < 0.2:
            transfers.publish(device.clock_ns())  # the host looks, and so learns of some landings
            transfers.landed()
            transfers.take_records()
    device.synchronize(event)
    transfers.drain()
    return Reuse(fills, reads, int(wrong.cpu()))


def _look(wrong: torch.Tensor, words: torch.Tensor, expert: int) -> None:
    wrong.add_((words != expert).any())
