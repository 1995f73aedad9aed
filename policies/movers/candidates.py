"""A short list of the best experts to copy in, kept sorted: highest utility first, then the layer
that runs soonest."""

from __future__ import annotations

import numpy as np

from policies.compile import inner
from policies.ledger import NOWHERE, READY
from policies.movers.lowest import SPARED, renew_lowest, search_lowest
from policies.movers.victims import free_slot
from policies.plan import PREFETCH_LIMIT


@inner
def insert_candidate(keys, utilities, distances, length, key, utility, distance):
    """Insert into arrays of PREFETCH_LIMIT entries sorted by (-utility, distance, arrival).
    Returns the new length."""
    place = length
    while place > 0 and (
        utility > utilities[place - 1]
        or (utility == utilities[place - 1] and distance < distances[place - 1])
    ):
        place -= 1
    if place >= PREFETCH_LIMIT:
        return length
    last = min(length, PREFETCH_LIMIT - 1)
    for other in range(last, place, -1):
        keys[other] = keys[other - 1]
        utilities[other] = utilities[other - 1]
        distances[other] = distances[other - 1]
    keys[place] = key
    utilities[place] = utility
    distances[place] = distance
    return last + 1


@inner
def lowest_evictable(ledger, state, plan, layer, nothing):
    """Utility that a newcomer of `layer` must exceed under the layer's quota: -nothing where a FREE
    slot is due, `nothing` where no slot can be given up."""
    utilities = state.utility
    expert_slot, slot_state = ledger.expert_slot, ledger.slot_state
    readers, taken = ledger.slot_readers, plan.taken
    experts = utilities.shape[1]
    held = plan.pending[layer]
    floor = nothing
    for expert in range(experts):
        slot = expert_slot[layer * experts + expert]
        if slot == NOWHERE:
            continue
        held += 1
        if slot_state[slot] != READY or readers[slot] > 0 or taken[slot] != 0:
            continue
        floor = min(floor, utilities[layer, expert])
    if held < state.quota[layer]:
        return -nothing
    return floor


@inner
def lowest_anywhere(ledger, state, plan, below_tau, nothing):
    """The same for the whole pool."""
    if free_slot(ledger, plan) != NOWHERE:
        return -nothing
    taus, utilities, versions = state.tau, state.flat_utility, state.utility_version
    slot_expert, readers, taken = ledger.slot_expert, ledger.slot_readers, plan.taken
    lowest_slot, lowest_utility = ledger.lowest_slot, ledger.lowest_utility
    computed = ledger.lowest_version
    floor = nothing
    for layer in range(versions.shape[0]):
        if computed[layer] != versions[layer]:
            renew_lowest(ledger, state, plan, layer)
        slot, utility = np.int64(lowest_slot[layer]), lowest_utility[layer]
        if slot == NOWHERE or utility >= floor:
            continue
        if taken[slot] != 0 or readers[slot] > 0:
            slot = search_lowest(ledger, state, plan, layer, SPARED)
            if slot == NOWHERE:
                continue
            utility = utilities[slot_expert[slot]]
        if utility < floor and not (below_tau and utility >= taus[layer]):
            floor = utility
    return floor
