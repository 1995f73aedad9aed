"""The slot pool in device memory: fixed tensors, allocated once, then only their bytes change."""

from typing import Any

import torch

from runtime.device import Device
from runtime.expert_layout import ExpertLayout
from runtime.expert_math import ExpertWeights


def slot_name(slot: int) -> tuple[str, int]:
    """The slot as a buffer of the hazard checker."""
    return ("slot", slot)


class SlotPool:
    """`rows` uint8 [slots + staging, row_bytes]; staging buffers come after the slots.

    A slot remembers the event of its last reader, which the next copy into it must wait for. Which
    expert it holds is the ledger's business alone.
    """

    def __init__(self, layout: ExpertLayout, slots: int, staging: int, device: Device) -> None:
        self.layout = layout
        self.slots, self.staging = slots, staging
        self.rows = device.alloc_device((slots + staging, layout.row_bytes), torch.uint8)
        self._last_reader: list[Any] = [None] * (slots + staging)
        self._weights = [layout.weights(row) for row in self.rows]
        self._bytes = [row[: layout.expert_bytes] for row in self.rows]

    def weights(self, slot: int) -> ExpertWeights:
        """Views of all that a slot holds."""
        return self._weights[slot]

    def gate_up(self, slot: int) -> torch.Tensor:
        """[2 * width, hidden] of a slot."""
        return self.layout.gate_up(self.rows[slot])

    def down(self, slot: int) -> torch.Tensor:
        """[hidden, width] of a slot."""
        return self.layout.down(self.rows[slot])

    def bytes_of(self, slot: int) -> torch.Tensor:
        """uint8 [expert_bytes]: where a copy into the slot goes."""
        return self._bytes[slot]

    def was_read(self, slot: int, event: Any) -> None:
        """`event` ends the last work that reads the slot."""
        self._last_reader[slot] = event

    def last_reader(self, slot: int) -> Any:
        """Event after which the slot may be overwritten, None if nobody ever read it."""
        return self._last_reader[slot]

    def invalidate(self, device: Device, stream: Any) -> None:
        """Nothing in the pool is valid any more (a new ledger, a cold start)."""
        for slot, event in enumerate(self._last_reader):
            if event is not None:
                device.wait(stream, event)
            device.poison(self.rows[slot], stream, writes=(slot_name(slot),))

    def free(self) -> None:
        """Give the memory back: the next engine on the device needs as much again. Nothing may be
        on its way into or out of a slot.
        """
        self.rows = self.rows.new_empty((0, self.layout.row_bytes))
        self._weights, self._bytes = [], []
