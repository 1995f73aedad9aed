"""Which slot to give up: FREE first, then the lowest utility among READY, unread, untaken slots.

Loops read arrays through local names: taking an array out of a record costs an atomic reference
count each time.
"""

from __future__ import annotations

import numpy as np

from policies.compile import inner
from policies.ledger import FREE, NOWHERE, READY
from policies.movers.lowest import SPARED, renew_lowest, search_lowest
from policies.state import LAYER, PASS

# Constants as numpy numbers: numba compiles a callee once more for each Python constant.
ANY_TAU = np.bool_(False)


@inner
def free_slot(ledger, plan):
    """The first FREE slot that the plan has not taken, or NOWHERE."""
    slot_state = ledger.slot_state
    taken = plan.taken
    for slot in range(ledger.free_from[0], slot_state.shape[0]):
        if slot_state[slot] == FREE and taken[slot] == 0:
            return slot
    return NOWHERE


@inner
def slots_held(ledger, plan, layer, experts):
    """Slots that hold or receive experts of `layer`, those added by the plan at hand included."""
    expert_slot = ledger.expert_slot
    held = plan.pending[layer]
    for key in range(layer * experts, (layer + 1) * experts):
        if expert_slot[key] != NOWHERE:
            held += 1
    return held


@inner(allocates=True)
def victim_over_quota(ledger, state, plan, layer):
    """The oldest (stamp, slot) of another layer that holds more than its quota, or NOWHERE."""
    stamps, quota = state.stamp, state.quota
    slot_expert, slot_state = ledger.slot_expert, ledger.slot_state
    readers, taken = ledger.slot_readers, plan.taken
    layers, experts = stamps.shape
    surplus = np.zeros(layers, np.int64)
    most = 0
    for other in range(layers):
        if other != layer and quota[other] >= 0:
            surplus[other] = slots_held(ledger, plan, other, experts) - quota[other]
            most = max(most, surplus[other])
    best = NOWHERE
    if most <= 0:
        return best
    best_stamp = 0
    for slot in range(slot_state.shape[0]):
        if slot_state[slot] != READY or readers[slot] > 0 or taken[slot] != 0:
            continue
        other = slot_expert[slot] // experts
        if surplus[other] <= 0:
            continue
        stamp = stamps[other, slot_expert[slot] - other * experts]
        if best == NOWHERE or stamp < best_stamp:
            best = slot
            best_stamp = stamp
    if best != NOWHERE:
        plan.pending[slot_expert[best] // experts] -= 1
    return best


@inner
def victim_in_layer(ledger, state, plan, layer, limit):
    """Slot for a new expert of `layer` under its quota. While the quota lasts: a FREE one, or one
    of a layer above its own quota (quotas may change). Then the layer's own lowest (utility, stamp,
    expert) with utility < limit. NOWHERE if there is none."""
    utilities, stamps = state.utility, state.stamp
    expert_slot, slot_state = ledger.expert_slot, ledger.slot_state
    readers, taken = ledger.slot_readers, plan.taken
    experts = utilities.shape[1]
    if slots_held(ledger, plan, layer, experts) < state.quota[layer]:
        slot = free_slot(ledger, plan)
        if slot == NOWHERE:
            slot = victim_over_quota(ledger, state, plan, layer)
        if slot != NOWHERE:
            plan.pending[layer] += 1
            return slot
    best = NOWHERE
    best_utility = limit
    best_stamp = 0
    for expert in range(experts):
        slot = expert_slot[layer * experts + expert]
        if slot == NOWHERE or slot_state[slot] != READY or readers[slot] > 0 or taken[slot] != 0:
            continue
        utility = utilities[layer, expert]
        stamp = stamps[layer, expert]
        if utility < best_utility or (
            best != NOWHERE and utility == best_utility and stamp < best_stamp
        ):
            best = slot
            best_utility = utility
            best_stamp = stamp
    return best


@inner
def victim_anywhere(ledger, state, plan, limit, below_tau):
    """Slot from the whole pool: FREE, else the lowest utility < limit (and < tau of its layer if
    `below_tau`); ties go to the layer whose next run is farthest, then to the oldest stamp.
    NOWHERE if
    there is none."""
    slot = free_slot(ledger, plan)
    if slot != NOWHERE:
        return slot
    taus, utilities, versions = state.tau, state.flat_utility, state.utility_version
    slot_expert, readers, taken = ledger.slot_expert, ledger.slot_readers, plan.taken
    lowest_slot, lowest_utility = ledger.lowest_slot, ledger.lowest_utility
    computed = ledger.lowest_version
    layers = versions.shape[0]
    running = state.clock[LAYER]
    best = np.int64(NOWHERE)
    best_utility = limit
    best_distance = np.int64(0)
    for layer in range(layers):
        if computed[layer] != versions[layer]:
            renew_lowest(ledger, state, plan, layer)
        slot, utility = np.int64(lowest_slot[layer]), lowest_utility[layer]
        if slot == NOWHERE or utility > best_utility:
            continue
        if taken[slot] != 0 or readers[slot] > 0:
            slot = search_lowest(ledger, state, plan, layer, SPARED)
            if slot == NOWHERE:
                continue
            utility = utilities[slot_expert[slot]]
        if best == NOWHERE and utility >= limit:
            continue
        if below_tau and utility >= taus[layer]:
            continue
        # Layers until this one runs next; the running layer is the farthest.
        distance = layer - running if layer > running else layer - running + layers
        if utility < best_utility or (utility == best_utility and distance > best_distance):
            best = slot
            best_utility = utility
            best_distance = distance
    return best


@inner
def find_victim(ledger, state, plan, layer, limit, below_tau):
    """Slot for a new expert of `layer`: within the layer where it has a quota, else from the whole
    pool."""
    if state.quota[layer] >= 0:
        return victim_in_layer(ledger, state, plan, layer, limit)
    return victim_anywhere(ledger, state, plan, limit, below_tau)


@inner
def note_eviction(ledger, state, slot):
    """Remember when the slot's present expert was dropped (read by the boundary calibration)."""
    key = ledger.slot_expert[slot]
    if key != NOWHERE:
        experts = state.utility.shape[1]
        state.evicted[key // experts, key % experts] = state.clock[PASS]


@inner
def slots_to_spare(ledger, state, plan, layer):
    """How many slots new experts of `layer` could get in this plan, whatever their utility."""
    slot_expert, slot_state = ledger.slot_expert, ledger.slot_state
    readers, taken = ledger.slot_readers, plan.taken
    experts = state.utility.shape[1]
    free = 0
    evictable = 0
    for slot in range(slot_state.shape[0]):
        if taken[slot] != 0:
            continue
        if slot_state[slot] == FREE:
            free += 1
            continue
        in_reach = state.quota[layer] < 0 or slot_expert[slot] // experts == layer
        if in_reach and slot_state[slot] == READY and readers[slot] == 0:
            evictable += 1
    if state.quota[layer] >= 0:
        room = state.quota[layer] - slots_held(ledger, plan, layer, experts)
        free = max(0, min(free, room))
    return free + evictable
