"""All experts in host memory: one block of bytes, filled once from safetensors."""

import torch

from runtime.checkpoints import CheckpointFacts
from runtime.device import Device
from runtime.expert_inventory import take_inventory
from runtime.expert_layout import ExpertLayout
from runtime.expert_math import ExpertWeights
from runtime.memory_plan import check_reservation
from runtime.weight_files import read_tensors


class HostArena:
    """`rows` uint8 [layers * experts, row_bytes], by flat key."""

    def __init__(self, layout: ExpertLayout, rows: torch.Tensor) -> None:
        self.layout, self.rows = layout, rows
        self._bytes: dict[int, torch.Tensor] = {}  # views, made at an expert's first copy

    def weights(self, expert: int) -> ExpertWeights:
        """Views of the expert (flat key)."""
        return self.layout.weights(self.rows[expert])

    def gate_up(self, expert: int) -> torch.Tensor:
        """[2 * width, hidden] of the expert (flat key)."""
        return self.layout.gate_up(self.rows[expert])

    def down(self, expert: int) -> torch.Tensor:
        """[hidden, width] of the expert (flat key)."""
        return self.layout.down(self.rows[expert])

    def bytes_of(self, expert: int) -> torch.Tensor:
        """uint8 [expert_bytes]: what a copy of the expert (flat key) moves."""
        view = self._bytes.get(expert)
        if view is None:
            view = self._bytes[expert] = self.rows[expert, : self.layout.expert_bytes]
        return view


def load_arena(facts: CheckpointFacts, layout: ExpertLayout, device: Device) -> HostArena:
    """Read every expert of a checkpoint, converted to the layout's dtype or quantised.

    UserError, before anything is allocated, if a name is unknown, a shape is wrong, or a part is
    missing or comes twice.
    """
    inventory = take_inventory(facts)
    size = layout.total * layout.row_bytes
    check_reservation(1, size, device.reserved_bytes)
    rows = device.alloc_host(size, layout.row_bytes).view(layout.total, layout.row_bytes)
    arena = HostArena(layout, rows)
    for stored, values in read_tensors(facts.path, inventory.tensors.__contains__):
        tensor = inventory.tensors[stored.name]
        first = inventory.layers[tensor.layer] * layout.experts
        stacked = values if tensor.expert is None else values[None]
        for offset, one in enumerate(stacked, tensor.expert or 0):
            for part, piece in tensor.split(one):
                layout.store(arena.rows[first + offset], part, piece)
    return arena
