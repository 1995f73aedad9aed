"""Which slot to give up: FREE first, then the lowest utility among READY, unread slots that the
plan does not use."""

from __future__ import annotations

from policies.compile import kernel
from policies.ledger import FREE, NOWHERE, READY
from policies.state import LAYER, PASS


@kernel
def next_run_distance(state, layer):
    """Layers until `layer` runs next; the running layer (or, while drafting, the last one) is the
    farthest."""
    layers = state.tau.shape[0]
    ahead = (layer - state.clock[LAYER]) % layers
    if ahead == 0:
        return layers
    return ahead


@kernel
def free_slot(ledger, plan):
    """The first FREE slot that the plan has not taken, or NOWHERE."""
    for slot in range(ledger.free_from[0], ledger.slot_state.shape[0]):
        if ledger.slot_state[slot] == FREE and plan.taken[slot] == 0:
            return slot
    return NOWHERE


@kernel
def slots_held(ledger, plan, layer, experts):
    """Slots that hold or receive experts of `layer`, those added by the plan at hand included."""
    held = plan.pending[layer]
    for key in range(layer * experts, (layer + 1) * experts):
        if ledger.expert_slot[key] != NOWHERE:
            held += 1
    return held


@kernel
def _evictable(ledger, plan, slot):
    return (
        ledger.slot_state[slot] == READY
        and ledger.slot_readers[slot] == 0
        and plan.taken[slot] == 0
    )


@kernel
def victim_in_layer(ledger, state, plan, layer, limit):
    """Slot for a new expert of `layer` under its quota: a FREE one while the quota lasts, then the
    layer's own lowest
    (utility, stamp, expert) with utility < limit. NOWHERE if there is none."""
    experts = state.utility.shape[1]
    if slots_held(ledger, plan, layer, experts) < state.quota[layer]:
        slot = free_slot(ledger, plan)
        if slot != NOWHERE:
            plan.pending[layer] += 1
            return slot
    best = NOWHERE
    best_utility = limit
    best_stamp = 0
    for expert in range(experts):
        slot = ledger.expert_slot[layer * experts + expert]
        if slot == NOWHERE or not _evictable(ledger, plan, slot):
            continue
        utility = state.utility[layer, expert]
        stamp = state.stamp[layer, expert]
        if utility < best_utility or (
            best != NOWHERE and utility == best_utility and stamp < best_stamp
        ):
            best = slot
            best_utility = utility
            best_stamp = stamp
    return best


@kernel
def victim_anywhere(ledger, state, plan, limit, below_tau):
    """Slot from the whole pool: FREE, else the lowest utility < limit (and < tau of its layer if
    `below_tau`); ties go to
    the layer whose next run is farthest, then to the oldest stamp. NOWHERE if there is none."""
    slot = free_slot(ledger, plan)
    if slot != NOWHERE:
        return slot
    experts = state.utility.shape[1]
    best = NOWHERE
    best_utility = limit
    best_distance = 0
    best_stamp = 0
    for slot in range(ledger.slot_state.shape[0]):
        key = ledger.slot_expert[slot]
        if key == NOWHERE or not _evictable(ledger, plan, slot):
            continue
        layer = key // experts
        expert = key - layer * experts
        utility = state.utility[layer, expert]
        if below_tau and utility >= state.tau[layer]:
            continue
        if utility > best_utility or (best == NOWHERE and utility >= limit):
            continue
        distance = next_run_distance(state, layer)
        stamp = state.stamp[layer, expert]
        if (
            utility < best_utility
            or distance > best_distance
            or (distance == best_distance and stamp < best_stamp)
        ):
            best = slot
            best_utility = utility
            best_distance = distance
            best_stamp = stamp
    return best


@kernel
def find_victim(ledger, state, plan, layer, limit, below_tau):
    """Slot for a new expert of `layer`: within the layer where it has a quota, else from the whole
    pool."""
    if state.quota[layer] >= 0:
        return victim_in_layer(ledger, state, plan, layer, limit)
    return victim_anywhere(ledger, state, plan, limit, below_tau)


@kernel
def note_eviction(ledger, state, slot):
    """Remember when the slot's present expert was dropped (read by the boundary calibration)."""
    key = ledger.slot_expert[slot]
    if key != NOWHERE:
        experts = state.utility.shape[1]
        state.evicted[key // experts, key % experts] = state.clock[PASS]
