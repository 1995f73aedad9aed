"""One expert on some rows: the same arithmetic on every lane, so that placement changes no bit."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

Activation = Callable[[torch.Tensor], torch.Tensor]
Gating = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # gate, up [n, I] -> [n, I]


@dataclass(frozen=True)
class ExpertWeights:
    """gate_up [2I, H], gate over up; down [H, I]; biases [2I], [H] or None. int8 matrices have
    float32 scales per output, [2I], [H].
    """

    gate_up: torch.Tensor
    down: torch.Tensor
    gate_up_bias: torch.Tensor | None = None
    down_bias: torch.Tensor | None = None
    gate_up_scale: torch.Tensor | None = None
    down_scale: torch.Tensor | None = None


def activated(activation: Activation) -> Gating:
    """activation(gate) * up, as most families compute it."""
    return lambda gate, up: activation(gate) * up


def expert_rows(hidden: torch.Tensor, weights: ExpertWeights, gating: Gating) -> torch.Tensor:
    """hidden [n, H] -> [n, H], before the router weight."""
    gate_up = _project(hidden, weights.gate_up, weights.gate_up_scale, weights.gate_up_bias)
    gated = gating(*gate_up.chunk(2, dim=-1))
    return _project(gated, weights.down, weights.down_scale, weights.down_bias)


def combine(contributions: torch.Tensor, output: torch.Tensor | None = None) -> torch.Tensor:
    """[rows, k, H] -> [rows, H]: summed in the router's order, wherever each was computed. `output`
    takes the sum, where given.
    """
    return torch.sum(contributions, dim=1, out=output)


def _project(
    rows: torch.Tensor,
    matrix: torch.Tensor,
    scale: torch.Tensor | None,
    bias: torch.Tensor | None,
) -> torch.Tensor:
    if scale is None:
        return functional.linear(rows, matrix, bias)
    # Integers up to 127 are exact in bfloat16, products of weight and scale would not be.
    product = functional.linear(rows, matrix.to(rows.dtype)).float() * scale
    return (product if bias is None else product + bias.float()).to(rows.dtype)
