"""What a plan must satisfy, checked while it is applied: the driver owns hazards, the policy owns
choices."""

from __future__ import annotations

import numpy as np

from policies import api
from policies.compile import inlined, inner
from policies.ledger import FILLING, NOWHERE, OK, READY, REASONS, begin_fill
from policies.plan import IN_FLIGHT, STAGING

NOT_PLACED = 20
PLACED_INACTIVE = 21
GPU_NOT_READY = 22
EARLY_NEEDS_GPU = 23
COPY_MISSING = 24
COPY_NOT_PLACED = 25
NOT_IN_FLIGHT = 26
STREAM_HELD = 27
NO_STAGING = 28
OVER_CREDITS = 29
DUPLICATE_DEMAND = 30

PLAN_REASONS = {
    **REASONS,
    NOT_PLACED: "an active expert has no placement",
    PLACED_INACTIVE: "an expert that is not active has a placement",
    GPU_NOT_READY: "placed on the GPU but not resident",
    EARLY_NEEDS_GPU: "resident, and launch=early has already started it on the GPU",
    COPY_MISSING: "placed FETCH or STREAM but no demand copy names it",
    COPY_NOT_PLACED: "a demand copy names an expert that is not placed FETCH or STREAM",
    NOT_IN_FLIGHT: "said to be in flight, but no copy of it is under way",
    STREAM_HELD: "STREAM of an expert that already has a slot",
    NO_STAGING: "STREAM without staging buffers",
    OVER_CREDITS: "more prefetches than credits",
    DUPLICATE_DEMAND: "two demand copies of one expert",
}


@inlined
def _refuse(refusal, code, expert, slot):
    refusal[0] = code
    refusal[1] = expert
    refusal[2] = slot
    return code


@inlined
def _first_stray(counts, placement):
    """The first expert that is placed without being active, or the number of experts."""
    experts = counts.shape[0]
    strays = np.int64(0)
    for expert in range(experts):
        strays += (counts[expert] == 0) & (placement[expert] != api.UNUSED)
    if strays > 0:
        for expert in range(experts):
            if counts[expert] == 0 and placement[expert] != api.UNUSED:
                return expert
    return experts


@inner
def apply_layer(ledger, observation, plan, layer, staging, launch_early):
    """Check placements, mark readers, start fills of the demand copies. Returns OK or a code, kept
    in plan.refusal."""
    counts, active, placement = observation.counts, observation.active, plan.placement
    expert_slot, slot_state = ledger.expert_slot, ledger.slot_state
    readers = ledger.slot_readers
    demand_expert, demand_slot = plan.demand_expert, plan.demand_slot
    experts = counts.shape[0]
    demands = plan.size[0]
    base = layer * experts
    copies_needed = 0
    stray = _first_stray(counts, placement)
    for at in range(observation.size[0]):
        expert = active[at]
        if expert > stray:
            break
        key = base + expert
        placed = placement[expert]
        if placed < api.GPU or placed > api.STREAM:
            return _refuse(plan.refusal, NOT_PLACED, key, -1)
        slot = expert_slot[key]
        ready = slot != NOWHERE and slot_state[slot] == READY
        if placed == api.GPU:
            if not ready:
                return _refuse(plan.refusal, GPU_NOT_READY, key, slot)
            readers[slot] += 1
        elif ready and launch_early:
            return _refuse(plan.refusal, EARLY_NEEDS_GPU, key, slot)
        if placed == api.FETCH or placed == api.STREAM:
            copies_needed += 1
    if stray < experts:
        return _refuse(plan.refusal, PLACED_INACTIVE, base + stray, -1)
    for place in range(demands):
        key = demand_expert[place]
        slot = demand_slot[place]
        if key < base or key >= base + experts:
            return _refuse(plan.refusal, COPY_NOT_PLACED, key, slot)
        for earlier in range(place):
            if demand_expert[earlier] == key:
                return _refuse(plan.refusal, DUPLICATE_DEMAND, key, slot)
        placed = placement[key - base]
        if placed == api.STREAM:
            if expert_slot[key] != NOWHERE:
                return _refuse(plan.refusal, STREAM_HELD, key, slot)
            if staging < 1:
                return _refuse(plan.refusal, NO_STAGING, key, slot)
            if slot != STAGING:
                return _refuse(plan.refusal, COPY_NOT_PLACED, key, slot)
        elif placed == api.FETCH:
            if slot == IN_FLIGHT:
                held = expert_slot[key]
                if held == NOWHERE or slot_state[held] != FILLING:
                    return _refuse(plan.refusal, NOT_IN_FLIGHT, key, held)
            else:
                code = begin_fill(ledger, key, slot)
                if code != OK:
                    return _refuse(plan.refusal, code, key, slot)
            readers[expert_slot[key]] += 1
        else:
            return _refuse(plan.refusal, COPY_NOT_PLACED, key, slot)
    if demands != copies_needed:
        for expert in range(experts):
            if placement[expert] >= api.FETCH:
                named = False
                for place in range(demands):
                    if demand_expert[place] == base + expert:
                        named = True
                if not named:
                    return _refuse(plan.refusal, COPY_MISSING, base + expert, -1)
    return OK


@inner
def apply_prefetches(ledger, plan, credits):
    """Start fills of the prefetches, at most `credits`. Returns OK or a code, kept in
    plan.refusal."""
    if plan.size[1] > max(credits, 0):
        return _refuse(
            plan.refusal, OVER_CREDITS, plan.prefetch_expert[max(credits, 0)], plan.size[1]
        )
    for place in range(plan.size[1]):
        code = begin_fill(ledger, plan.prefetch_expert[place], plan.prefetch_slot[place])
        if code != OK:
            return _refuse(
                plan.refusal, code, plan.prefetch_expert[place], plan.prefetch_slot[place]
            )
    return OK
