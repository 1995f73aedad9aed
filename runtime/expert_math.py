"""One expert on some rows: the same arithmetic on every lane, so that placement changes no bit."""

from collections.abc import Callable

import torch
from torch.nn import functional

Activation = Callable[[torch.Tensor], torch.Tensor]


def expert_rows(
    hidden: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, activation: Activation
) -> torch.Tensor:
    """hidden [n, H], gate_up [2I, H], down [H, I] -> [n, H], before the router weight."""
    gate, up = functional.linear(hidden, gate_up).chunk(2, dim=-1)
    return functional.linear(activation(gate) * up, down)


def combine(contributions: torch.Tensor) -> torch.Tensor:
    """[rows, k, H] -> [rows, H]: summed in the router's order, wherever each was computed."""
    return contributions.sum(dim=1)
