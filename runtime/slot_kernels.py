"""Experts in slots, computed on the device through a table that says which slot holds which expert.

The table is read when the work runs, not when it is queued: so residents of a layer can be queued
before the host knows what the router chose.
"""

from collections.abc import Sequence
from typing import Protocol

import torch

from runtime.expert_math import Gating, expert_rows
from runtime.pace import Pace
from runtime.slots import SlotPool

NOWHERE = -1


class SlotKernel(Protocol):
    """Called as work of the compute stream."""

    def compute(
        self,
        hidden: torch.Tensor,
        experts: torch.Tensor,
        slot_of: torch.Tensor,
        contributions: torch.Tensor,
        numbers: Sequence[int] | None = None,
    ) -> None:
        """Fill contributions [rows, k, H] wherever the router chose an expert that has a slot.

        hidden [rows, H], experts int [rows, k], slot_of int32 [experts] (slot or -1): all on the
        device. numbers: no other experts have a slot; None where the host does not know.
        """


class HostLoop:
    """For a device whose memory the host may read: one product per expert, on its rows alone."""

    def __init__(self, pool: SlotPool, gating: Gating, pace: Pace) -> None:
        self._pool, self._gating, self._pace = pool, gating, pace

    def compute(
        self,
        hidden: torch.Tensor,
        experts: torch.Tensor,
        slot_of: torch.Tensor,
        contributions: torch.Tensor,
        numbers: Sequence[int] | None = None,
    ) -> None:
        """See SlotKernel."""
        pool, slots = self._pool, slot_of.tolist()
        if numbers is None:
            numbers = [number for number in experts.unique().tolist() if slots[number] >= 0]
        begin = self._pace.now_ns()
        for number in numbers:
            slot = slots[number]
            rows, places = (experts == number).nonzero(as_tuple=True)
            contributions[rows, places] = expert_rows(
                hidden[rows], pool.weights(slot), self._gating
            )
            begin = self._pace.gpu_expert(begin, len(rows))


class MaskedLoop:
    """For any device, without asking it anything: each expert is computed on all rows, and what
    belongs to others is masked out. Slow where the host does not know the experts.
    """

    def __init__(self, pool: SlotPool, gating: Gating) -> None:
        self._pool, self._gating = pool, gating

    def compute(
        self,
        hidden: torch.Tensor,
        experts: torch.Tensor,
        slot_of: torch.Tensor,
        contributions: torch.Tensor,
        numbers: Sequence[int] | None = None,
    ) -> None:
        """See SlotKernel."""
        layout, pool = self._pool.layout, self._pool
        for number in range(len(slot_of)) if numbers is None else numbers:
            slot = slot_of[number : number + 1]
            row = pool.rows.index_select(0, slot.clamp(min=0).long())[0]
            values = expert_rows(hidden, layout.weights(row), self._gating)
            chosen = (experts == number) & (slot >= 0)
            # In place and by mask: unfilled places may hold anything, also NaN.
            contributions.copy_(
                torch.where(chosen.unsqueeze(-1), values.unsqueeze(1), contributions)
            )
