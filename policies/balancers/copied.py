"""Misses that are copied: fetched into a slot where one can be had, else streamed, else left to the
CPU."""

from __future__ import annotations

import numpy as np

from policies import api
from policies.compile import inner
from policies.ledger import NOWHERE, is_ready
from policies.movers.victims import ANY_TAU, find_victim, note_eviction
from policies.plan import IN_FLIGHT, STAGING, add_demand

WAIT = np.bool_(True)
DO_NOT_WAIT = np.bool_(False)


@inner
def place_residents(ledger, observation, plan, layer, wait):
    """READY experts on the GPU. Those on their way: waited for if `wait`, else on the CPU."""
    base = layer * observation.counts.shape[0]
    for place in range(observation.size[0]):
        expert = observation.active[place]
        slot = ledger.expert_slot[base + expert]
        if is_ready(ledger, base + expert):
            plan.placement[expert] = api.GPU
            plan.taken[slot] = 1
        elif slot != NOWHERE:
            if wait:
                plan.placement[expert] = api.FETCH
                add_demand(plan, base + expert, np.int64(IN_FLIGHT))
            else:
                plan.placement[expert] = api.CPU


@inner
def place_streamed(ledger, state, plan, layer, expert, staging):
    """Copy `expert` (number within the layer) through a staging buffer. Without staging any slot
    will do, and without slots the CPU computes."""
    key = layer * state.utility.shape[1] + expert
    if staging > 0:
        plan.placement[expert] = api.STREAM
        add_demand(plan, key, np.int64(STAGING))
        return
    slot = find_victim(ledger, state, plan, layer, np.inf, ANY_TAU)
    if slot == NOWHERE:
        plan.placement[expert] = api.CPU
        return
    note_eviction(ledger, state, slot)
    plan.placement[expert] = api.FETCH
    add_demand(plan, key, slot)


@inner
def place_kept(ledger, state, plan, layer, expert, staging):
    """Copy `expert` into a slot whose expert has a lower utility, else stream it."""
    slot = find_victim(ledger, state, plan, layer, state.utility[layer, expert], ANY_TAU)
    if slot == NOWHERE:
        place_streamed(ledger, state, plan, layer, expert, staging)
        return
    note_eviction(ledger, state, slot)
    plan.placement[expert] = api.FETCH
    add_demand(plan, layer * state.utility.shape[1] + expert, slot)
