"""What a policy gets to see of a layer, and what it pays for seeing more than counts."""

from __future__ import annotations

from policies.api import NEEDS, Routing
from policies.costs import CostTable
from traces.window import Window

PER_STEP = "draft_tokens"


def observed_routing(window: Window, layer: int, needs: frozenset[str]) -> Routing:
    """The routing of `layer`, with weights and predictions only where `needs` declares them."""
    weights = predicted = None
    if "router_mass" in needs and window.weights is not None:
        weights = window.weights[:, layer]
    horizon = max((step for step in (1, 2, 3) if f"next_layer_{step}" in needs), default=0)
    if horizon and window.next_layer is not None:
        predicted = window.next_layer[:horizon, :, layer]
    return Routing(layer, window.experts[:, layer], weights, predicted)


def priced_layer_ns(needs: frozenset[str], costs: CostTable) -> int:
    """What the declared needs add between router and decision, per layer."""
    return sum(
        int(price)
        for need, price in zip(NEEDS, costs.needs_ns, strict=True)
        if need in needs and need != PER_STEP
    )


def priced_step_ns(needs: frozenset[str], costs: CostTable) -> int:
    """What the declared needs add to a draft step."""
    return int(costs.needs_ns[NEEDS.index(PER_STEP)]) if PER_STEP in needs else 0
