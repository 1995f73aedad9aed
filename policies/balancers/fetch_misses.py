"""Every miss is fetched and stays; where every slot in reach is needed by this very layer, it is
streamed instead."""

from __future__ import annotations

import numpy as np

from policies import api
from policies.compile import inner
from policies.ledger import NOWHERE, READY
from policies.movers.victims import ANY_TAU, find_victim, note_eviction
from policies.plan import IN_FLIGHT, STAGING, add_demand


@inner
def _order_misses(state, observation, plan, layer):
    """Fill `plan.order` with the experts not placed yet, best first. Returns their number."""
    utilities, counts = state.utility, observation.counts
    active, placement, order = observation.active, plan.placement, plan.order
    length = 0
    for place in range(observation.size[0]):
        expert = active[place]
        if placement[expert] != api.UNUSED:
            continue
        utility = utilities[layer, expert]
        at = length
        while at > 0 and (
            utility > utilities[layer, order[at - 1]]
            or (
                utility == utilities[layer, order[at - 1]]
                and counts[expert] > counts[order[at - 1]]
            )
        ):
            order[at] = order[at - 1]
            at -= 1
        order[at] = expert
        length += 1
    return length


@inner
def place_fetching_misses(ledger, state, observation, plan, layer, bypass):
    """Residents first, then copies under way, then misses by utility and row count. `bypass`: an
    expert whose utility is below
    every victim's is streamed (Belady with bypass)."""
    expert_slot, slot_state = ledger.expert_slot, ledger.slot_state
    placement, taken, active = plan.placement, plan.taken, observation.active
    base = layer * placement.shape[0]
    for place in range(observation.size[0]):
        expert = active[place]
        slot = expert_slot[base + expert]
        if slot != NOWHERE and slot_state[slot] == READY:
            placement[expert] = api.GPU
            taken[slot] = 1
    for place in range(observation.size[0]):
        expert = active[place]
        slot = expert_slot[base + expert]
        if placement[expert] == api.UNUSED and slot != NOWHERE:
            placement[expert] = api.FETCH
            taken[slot] = 1
            add_demand(plan, base + expert, np.int64(IN_FLIGHT))
    misses = _order_misses(state, observation, plan, layer)
    for place in range(misses):
        expert = plan.order[place]
        limit = np.inf
        if bypass:
            limit = state.utility[layer, expert]
        slot = find_victim(ledger, state, plan, layer, limit, ANY_TAU)
        if slot == NOWHERE:
            placement[expert] = api.STREAM
            add_demand(plan, base + expert, np.int64(STAGING))
        else:
            note_eviction(ledger, state, slot)
            placement[expert] = api.FETCH
            add_demand(plan, base + expert, slot)
