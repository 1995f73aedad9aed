"""Dispatch of the balancer: who computes each active expert of this layer, and the layer's
threshold for its next run."""

from __future__ import annotations

from policies import kinds
from policies.balancers.assigned import place_assigned
from policies.balancers.cheaper import place_cheaper
from policies.balancers.fetch_misses import place_fetching_misses
from policies.balancers.priced import place_priced
from policies.balancers.residency import place_all_cpu, place_by_residency
from policies.balancers.split import place_split
from policies.balancers.stream_misses import place_streaming_misses
from policies.balancers.threshold import choose_threshold
from policies.compile import inner
from policies.state import BALANCER

BYPASS = 3


@inner
def balance(program, state, costs, ledger, observation, plan, layer, staging, launch_early):
    """Fill the placements and demand copies of the plan."""
    kind = program.balancer
    if kind == kinds.ALL_CPU:
        place_all_cpu(observation, plan)
    elif kind == kinds.FETCH_MISSES:
        bypass = state.parameters[BALANCER, BYPASS] > 0.0
        place_fetching_misses(ledger, state, observation, plan, layer, bypass)
    elif kind == kinds.STREAM_MISSES:
        place_streaming_misses(ledger, state, observation, plan, layer, staging)
    elif kind == kinds.CHEAPER:
        place_cheaper(ledger, state, costs, observation, plan, layer, staging)
    elif kind == kinds.SPLIT:
        place_split(ledger, state, costs, observation, plan, layer, staging)
    elif kind == kinds.PRICED:
        place_priced(
            ledger, state, costs, observation, plan, layer, staging, launch_early
        )  # fmt: skip
    elif kind == kinds.ASSIGNMENT or kind == kinds.GREEDY or kind == kinds.BY_GAIN:
        place_assigned(
            ledger, state, costs, observation, plan, layer, staging, launch_early, kind
        )  # fmt: skip
    else:
        place_by_residency(ledger, observation, plan, layer)
    if kind == kinds.THRESHOLD:
        choose_threshold(ledger, state, costs, layer, ledger.slot_state.shape[0])
