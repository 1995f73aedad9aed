"""A short list of the best experts to copy in, kept sorted: highest utility first, then the layer
that runs soonest."""

from __future__ import annotations

from policies.compile import inner
from policies.ledger import FREE, NOWHERE, READY
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
    utilities, taus = state.utility, state.tau
    slot_expert, slot_state = ledger.slot_expert, ledger.slot_state
    readers, taken = ledger.slot_readers, plan.taken
    experts = utilities.shape[1]
    flat = state.flat_utility  # by key: a division for each slot would take most of the time
    floor = nothing
    for slot in range(slot_state.shape[0]):
        if taken[slot] != 0:
            continue
        if slot_state[slot] == FREE:
            return -nothing
        if slot_state[slot] != READY or readers[slot] > 0:
            continue
        key = slot_expert[slot]
        utility = flat[key]
        if utility < floor and not (below_tau and utility >= taus[key // experts]):
            floor = utility
    return floor
