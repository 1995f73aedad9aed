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
def candidate_room(state, plan, ordered):
    """How many candidates can matter. Where all share one pool and are `ordered` by utility, no
    later one finds a slot once one finds none, so there need not be more than credits, beside
    those that the plan prefetches already."""
    quota = state.quota
    bounded = np.int64(0)
    for layer in range(quota.shape[0]):
        bounded += quota[layer] >= 0
    if not ordered or bounded > 0:
        return np.int64(PREFETCH_LIMIT)
    return min(np.int64(PREFETCH_LIMIT), plan.credits[0] + plan.size[1])


@inner
def renew_best_missing(ledger, state, layer):
    """Set `best_missing` of `layer` in the ledger."""
    utilities = state.utility[layer]
    experts = utilities.shape[0]
    slots = ledger.expert_slot[layer * experts : (layer + 1) * experts]
    best = -np.inf
    for expert in range(experts):  # no branches, which would be guessed wrong
        value = utilities[expert] if slots[expert] == NOWHERE else -np.inf
        best = max(best, value)
    ledger.best_missing[layer] = best
    ledger.missing_version[layer] = state.utility_version[layer]


@inner
def insert_candidate(keys, utilities, distances, length, room, key, utility, distance):
    """Insert into the first `room` entries of arrays sorted by (-utility, distance, arrival).
    Returns the new length."""
    place = length
    while place > 0 and (
        utility > utilities[place - 1]
        or (utility == utilities[place - 1] and distance < distances[place - 1])
    ):
        place -= 1
    if place >= room:
        return length
    last = min(length, room - 1)
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
