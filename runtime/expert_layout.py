"""How one expert lies in memory: gate over up, then down, in one row of bytes."""

from dataclasses import dataclass

import torch

from runtime.checkpoints import CheckpointFacts
from runtime.expert_names import DOWN, GATE

ALIGNMENT = 64  # rows start at cache lines; vector loads of some kernels want that


@dataclass(frozen=True)
class ExpertLayout:
    """Sizes of the experts of one model in the compute dtype. `layers` counts MoE layers only."""

    layers: int
    experts: int
    hidden: int
    width: int
    dtype: torch.dtype

    @property
    def expert_bytes(self) -> int:
        """Bytes that a copy of one expert moves."""
        return 3 * self.hidden * self.width * self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        """Distance of two experts in memory."""
        return -(-self.expert_bytes // ALIGNMENT) * ALIGNMENT

    @property
    def total(self) -> int:
        """Experts in all layers; a flat key is layer * experts + expert."""
        return self.layers * self.experts

    def gate_up(self, row: torch.Tensor) -> torch.Tensor:
        """View [2 * width, hidden] of a row uint8 [row_bytes]."""
        size = 2 * self.width * self.hidden * self.dtype.itemsize
        return row[:size].view(self.dtype).view(2 * self.width, self.hidden)

    def down(self, row: torch.Tensor) -> torch.Tensor:
        """View [hidden, width] of a row uint8 [row_bytes]."""
        begin = 2 * self.width * self.hidden * self.dtype.itemsize
        return row[begin : self.expert_bytes].view(self.dtype).view(self.hidden, self.width)

    def projection(self, row: torch.Tensor, name: str) -> torch.Tensor:
        """View of one projection: gate, up [width, hidden], down [hidden, width]."""
        if name == DOWN:
            return self.down(row)
        half = self.gate_up(row)
        return half[: self.width] if name == GATE else half[self.width :]


def layout_of(facts: CheckpointFacts, dtype: torch.dtype) -> ExpertLayout:
    """The layout of a target's experts."""
    return ExpertLayout(
        len(facts.moe_layers), facts.experts, facts.hidden, facts.expert_width, dtype
    )
