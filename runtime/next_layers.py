"""Predicted routing: the routers of later layers, applied to the router input of this one."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from runtime.routing_rule import TOP_K, RoutingRule
from traces.rows import FILLER


@dataclass(frozen=True)
class RouterWeights:
    """weight [layers, experts, H] and bias [layers, experts] or None of all routers, in the dtype
    in which they compute.
    """

    weight: torch.Tensor
    bias: torch.Tensor | None

    @classmethod
    def stacked(cls, routers: Sequence[nn.Module]) -> "RouterWeights":
        """Of router modules with a `weight` and perhaps a `bias`."""
        biases = [getattr(router, "bias", None) for router in routers]
        weights = torch.stack([router.weight.detach() for router in routers])  # type: ignore[union-attr,operator]
        if any(bias is None for bias in biases):
            return cls(weights, None)
        return cls(weights, torch.stack([bias.detach() for bias in biases]))  # type: ignore[union-attr]

    def logits(self, inputs: torch.Tensor, first: int) -> torch.Tensor:
        """inputs [n, rows, H] -> logits [n, rows, experts] of the routers from `first` on."""
        last = first + len(inputs)
        products = torch.bmm(inputs.to(self.weight.dtype), self.weight[first:last].transpose(1, 2))
        return products if self.bias is None else products + self.bias[first:last, None]


class NextLayers:
    """Predicts 1..horizon layers ahead; exactly what the recorder stores as next_layer."""

    def __init__(
        self,
        routers: Sequence[nn.Module],
        horizon: int,
        top_k: int,
        rule: RoutingRule = TOP_K,
    ) -> None:
        self._routers = RouterWeights.stacked(routers) if horizon else None
        self._layers, self._horizon = len(routers), horizon
        self._top_k, self._rule = top_k, rule

    def predict(self, layer: int, hidden: torch.Tensor) -> torch.Tensor | None:
        """hidden [rows, H] -> int32 [horizon, rows, k], FILLER behind the last layer; None for
        horizon 0.
        """
        if self._routers is None:
            return None
        predicted = torch.full(
            (self._horizon, len(hidden), self._top_k), FILLER, dtype=torch.int32,
            device=hidden.device,
        )  # fmt: skip
        following = min(self._horizon, self._layers - layer - 1)
        if following:
            repeated = hidden.expand(following, *hidden.shape)
            logits = self._routers.logits(repeated, layer + 1).float()
            predicted[:following] = self._rule.choose(logits, self._top_k).to(torch.int32)
        return predicted


def horizon_of(needs: frozenset[str]) -> int:
    """How many layers ahead a policy with these `needs` looks."""
    return max((int(need[-1]) for need in needs if need.startswith("next_layer_")), default=0)
