"""Dispatch of the balancer: who computes each active expert of this layer, and the layer's
threshold for its next run."""

from __future__ import annotations

from policies import kinds
from policies.balancers.fetch_misses import place_fetching_misses
from policies.balancers.residency import place_all_cpu, place_by_residency
from policies.balancers.threshold import choose_threshold
from policies.compile import kernel
from policies.state import BALANCER

BYPASS = 3


@kernel
def balance(program, state, costs, ledger, observation, plan, layer):
    """Fill the placements and demand copies of the plan."""
    kind = program.balancer
    if kind == kinds.ALL_CPU:
        place_all_cpu(observation, plan)
    elif kind == kinds.FETCH_MISSES:
        bypass = state.parameters[BALANCER, BYPASS] > 0.0
        place_fetching_misses(ledger, state, observation, plan, layer, bypass)
    else:
        place_by_residency(ledger, observation, plan, layer)
    if kind == kinds.THRESHOLD:
        choose_threshold(ledger, state, costs, layer, ledger.slot_state.shape[0])
