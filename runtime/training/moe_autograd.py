"""Expert feed-forward blocks as one autograd function over rows sorted by expert.

One plain loop over experts with its own backward pass; on a CPU this is faster than padding to
batched products because nothing is multiplied by zeros and autograd sees a single node.
"""

from __future__ import annotations

from typing import Any

import torch


class GroupedLoop(torch.autograd.Function):
    """``down_e(silu(gate_e(x)) * up_e(x))`` for every row's own expert ``e``."""

    @staticmethod
    def forward(
        context: Any,
        rows: torch.Tensor,
        gate_up: torch.Tensor,
        down: torch.Tensor,
        ends: list[int],
    ) -> torch.Tensor:
        """Apply the experts.

        rows: float[n, H] sorted by expert; gate_up: float[E, 2 I, H]; down: float[E, H, I];
        ends[e]: first row after expert e. Returns float[n, H].
        """
        hidden = rows.new_empty(rows.shape[0], gate_up.shape[1])
        for expert, start, end in segments(ends):
            torch.mm(rows[start:end], gate_up[expert].t(), out=hidden[start:end])
        gate, up = hidden.chunk(2, dim=-1)
        sigmoid = torch.sigmoid(gate)
        active = gate * sigmoid * up
        result = torch.empty_like(rows)
        for expert, start, end in segments(ends):
            torch.mm(active[start:end], down[expert].t(), out=result[start:end])
        context.save_for_backward(rows, gate_up, down, hidden, sigmoid, active)
        context.ends = ends
        return result

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of rows, gate_up and down; experts without rows get zeros."""
        rows, gate_up, down, hidden, sigmoid, active = context.saved_tensors
        gradient = gradient.contiguous()
        active_gradient = torch.empty_like(active)
        down_gradient = torch.zeros_like(down)
        for expert, start, end in segments(context.ends):
            part = gradient[start:end]
            torch.mm(part, down[expert], out=active_gradient[start:end])
            torch.mm(part.t(), active[start:end], out=down_gradient[expert])
        gate, up = hidden.chunk(2, dim=-1)
        silu_slope = sigmoid * (1 + gate * (1 - sigmoid))
        hidden_gradient = torch.cat(
            (active_gradient * up * silu_slope, active_gradient * (gate * sigmoid)), dim=-1
        )
        rows_gradient = torch.empty_like(rows)
        gate_up_gradient = torch.zeros_like(gate_up)
        for expert, start, end in segments(context.ends):
            part = hidden_gradient[start:end]
            torch.mm(part, gate_up[expert], out=rows_gradient[start:end])
            torch.mm(part.t(), rows[start:end], out=gate_up_gradient[expert])
        return rows_gradient, gate_up_gradient, down_gradient, None


def segments(ends: list[int]) -> list[tuple[int, int, int]]:
    """(expert, first row, row after the last) of the experts that have rows."""
    starts = [0, *ends[:-1]]
    return [
        (expert, start, end)
        for expert, (start, end) in enumerate(zip(starts, ends, strict=True))
        if end > start
    ]
