"""Predicted routing: the routers of later layers, applied to the router input of this one."""

from collections.abc import Sequence

import torch
from torch import nn

from traces.rows import FILLER


class NextLayers:
    """Predicts 1..horizon layers ahead; exactly what the recorder stores as next_layer."""

    def __init__(self, routers: Sequence[nn.Module], horizon: int, top_k: int) -> None:
        self._weights = [router.weight.detach() for router in routers]
        self._horizon, self._top_k = horizon, top_k

    def predict(self, layer: int, hidden: torch.Tensor) -> torch.Tensor | None:
        """hidden [rows, H] -> int32 [horizon, rows, k], FILLER behind the last layer; None for
        horizon 0.
        """
        if self._horizon == 0:
            return None
        predicted = torch.full(
            (self._horizon, len(hidden), self._top_k), FILLER, dtype=torch.int32,
            device=hidden.device,
        )  # fmt: skip
        following = self._weights[layer + 1 : layer + 1 + self._horizon]
        for distance, weight in enumerate(following):
            logits = nn.functional.linear(hidden, weight).float()
            predicted[distance] = torch.topk(logits, self._top_k, dim=-1).indices
        return predicted


def horizon_of(needs: frozenset[str]) -> int:
    """How many layers ahead a policy with these `needs` looks."""
    return max((int(need[-1]) for need in needs if need.startswith("next_layer_")), default=0)
