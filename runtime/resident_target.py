"""A target that computes all experts from the host arena, one after another: the arithmetic of an
engine in any expert format, without its movements.
"""

from pathlib import Path

import torch

from runtime.checkpoints import open_target, torch_dtype
from runtime.device import Device
from runtime.expert_layout import SAME, layout_of
from runtime.expert_math import combine, expert_rows
from runtime.experts import connect, gating_of
from runtime.host_arena import HostArena, load_arena
from runtime.row_groups import group_choices
from runtime.target_model import TargetModel
from runtime.target_shell import load_shell


def open_resident_target(
    path: str | Path, device: Device, dtype: str = "float32", expert_format: str = SAME
) -> TargetModel:
    """Load a checkpoint so. `device` gives the host memory and must live as long."""
    facts, number_format = open_target(path), torch_dtype(dtype)
    arena = load_arena(facts, layout_of(facts, number_format, expert_format), device)
    target = load_shell(facts, torch.device("cpu"), number_format)
    connect(target, _Experts(arena, target).forward)
    return target


class _Experts:
    def __init__(self, arena: HostArena, target: TargetModel) -> None:
        self._arena, self._gating = arena, gating_of(target)

    def forward(
        self, layer: int, hidden: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """See `experts.connect`."""
        top_k = weights.shape[1]
        contributions = hidden.new_empty(*weights.shape, hidden.shape[1])
        for number, chosen in group_choices(experts.numpy()).items():
            held = self._arena.weights(layer * self._arena.layout.experts + number)
            choices = torch.tensor(chosen)
            values = expert_rows(hidden[choices // top_k], held, self._gating)
            contributions.flatten(0, 1)[choices] = values
        return combine(contributions * weights.unsqueeze(-1).to(hidden.dtype))
