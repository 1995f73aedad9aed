"""The compiled decisions, called unchanged by Session (runtime, SimPy engine) and by the compiled
engine.

The three decisions are compiled once for all callers; their halves are copied into them, so that
the parts below are optimised once there and not at every level between.

`enter_layer` = open_layer (publish landed copies, count rows) + decide + close_layer (validate,
mark readers, start
fills). A policy in plain Python uses the two halves around its own decision.
"""

from __future__ import annotations

import numpy as np

from policies import api, kinds
from policies.balancers.balance import balance
from policies.compile import inlined, inner
from policies.credits import draft_cap, layer_cap
from policies.estimators.estimate import estimate
from policies.estimators.next_tokens import learn_next_tokens
from policies.estimators.token_shares import learn_tokens
from policies.ledger import (
    NOWHERE,
    OK,
    READY,
    copies_in_flight,
    digest,
    publish,
    release_readers,
)
from policies.movers.move import move
from policies.observation import observe_rows
from policies.plan import clear_plan
from policies.state import ACCUMULATED_NS, ACTIVE, LAYER, LEAVING, MISSES, ROWS, WANTED
from policies.validate import apply_layer, apply_prefetches
from policies.windows.pass_time import note_layer_time

BAD_ROUTING = 40
MEAN_STEP = 0.05  # of the running means in state.measured


@inlined
def publish_landed(ledger, plan, slots, generations, landed):
    """Publish `landed` copies: slots int64 [n], generations int64 [n]. Returns OK or a code, kept
    in plan.refusal."""
    for place in range(landed):
        code = publish(ledger, slots[place], generations[place])
        if code != OK:
            plan.refusal[0] = code
            plan.refusal[1] = -1
            plan.refusal[2] = slots[place]
            return code
    return OK


@inlined
def open_layer(
    ledger, observation, plan, costs, layer, experts, weights, predicted, slots, generations, landed
):
    """First half of enter_layer. Returns (code, view digest); credits are then in plan.credits."""
    clear_plan(plan, 0)
    code = publish_landed(ledger, plan, slots, generations, landed)
    if code != OK:
        return code, digest(ledger)
    bad = observe_rows(observation, experts, weights, predicted)
    if bad >= 0:
        plan.refusal[0] = BAD_ROUTING
        plan.refusal[1] = bad
        return BAD_ROUTING, digest(ledger)
    ready, active = observation.ready, observation.active
    expert_slot, slot_state = ledger.expert_slot, ledger.slot_state
    base = layer * ready.shape[0]
    for place in range(observation.size[0]):
        expert = active[place]
        slot = expert_slot[base + expert]
        ready[expert] = slot != NOWHERE and slot_state[slot] == READY
    rows = min(observation.size[1], costs.dense_ns.shape[0] - 1)
    layer_ns = costs.dense_ns[rows] + costs.router_ns + costs.d2h_ns
    plan.credits[0] = layer_cap(layer_ns, costs.copy_ns) - copies_in_flight(ledger)
    return OK, digest(ledger)


@inlined
def close_layer(ledger, observation, plan, layer, staging, launch_early, credits):
    """Second half of enter_layer. Demand copies of the plan use up credits before its
    prefetches."""
    code = apply_layer(ledger, observation, plan, layer, staging, launch_early)
    if code != OK:
        return code
    return apply_prefetches(ledger, plan, credits)


@inlined
def new_demand_copies(plan):
    """Demand copies of the plan that enter the link now (those in flight already do not)."""
    copies = 0
    demand_slot = plan.demand_slot
    for place in range(plan.size[0]):
        if demand_slot[place] != -1:
            copies += 1
    return copies


@inlined
def _measure_layer(ledger, observation, state, layer):
    """Running means of active and missing experts, and hot experts without a slot (WANTED)."""
    utilities, counts, measured = state.utility[layer], observation.counts, state.measured
    experts = utilities.shape[0]
    slots = ledger.expert_slot[layer * experts : (layer + 1) * experts]
    tau = float(state.tau[layer])
    wanted = np.int64(0)
    missing = np.int64(0)
    for expert in range(experts):  # no branches, which would be guessed wrong
        nowhere = slots[expert] == NOWHERE
        wanted += nowhere & (utilities[expert] >= tau)
        missing += nowhere & (counts[expert] > 0)
    state.clock[WANTED] += wanted
    for entry, value in ((ACTIVE, float(observation.size[0])), (MISSES, float(missing))):
        mean = measured[entry]
        if mean == 0.0:
            mean = value
        measured[entry] = mean + MEAN_STEP * (value - mean)


@inlined
def _estimate_layer_ns(costs, observation, plan, state):
    cpu_ns, gpu_ns, placement = costs.cpu_ns, costs.gpu_ns, plan.placement
    active, counts = observation.active, observation.counts
    rows = min(observation.size[1], costs.dense_ns.shape[0] - 1)
    cpu = 0
    gpu = 0
    link = 0
    for place in range(observation.size[0]):
        expert = active[place]
        count = min(counts[expert], cpu_ns.shape[0] - 1)
        if placement[expert] == api.CPU:
            cpu += cpu_ns[count]
        else:
            gpu += gpu_ns[count]
            if placement[expert] != api.GPU:
                link += costs.copy_ns
    return costs.dense_ns[rows] + costs.router_ns + costs.d2h_ns + max(cpu, max(gpu, link))


@inner
def enter_layer(
    program, state, costs, ledger, observation, plan, layer, staging, launch_early,
    experts, weights, predicted, slots, generations, landed,
):  # fmt: skip
    """One decision of a composed policy. Returns (code, view digest); the plan holds the rest."""
    code, view = open_layer(
        ledger, observation, plan, costs, layer, experts, weights, predicted, slots, generations,
        landed,
    )  # fmt: skip
    if code != OK:
        return code, view
    state.clock[LAYER] = layer
    state.clock[LEAVING] = 0
    state.clock[ROWS] = observation.size[1]
    credits = plan.credits[0]
    estimate(program, state, observation, layer)
    if program.estimator == kinds.REUSE:
        learn_tokens(state, experts, layer)
        learn_next_tokens(state, experts, layer)
    balance(program, state, costs, ledger, observation, plan, layer, staging, launch_early)
    credits -= new_demand_copies(plan)
    plan.credits[0] = credits
    _measure_layer(ledger, observation, state, layer)
    move(program, state, costs, ledger, observation, plan)
    if program.window == kinds.EXPECTED_GAIN:
        note_layer_time(state, costs, ledger, observation, plan, experts)
    state.clock[ACCUMULATED_NS] += _estimate_layer_ns(costs, observation, plan, state)
    return close_layer(ledger, observation, plan, layer, staging, launch_early, credits), view


@inlined
def open_moves(ledger, plan, cap, slots, generations, landed):
    """Publish before a prefetch-only decision. Returns (code, view digest); credits are then in
    plan.credits."""
    clear_plan(plan, 0)
    code = publish_landed(ledger, plan, slots, generations, landed)
    plan.credits[0] = cap - copies_in_flight(ledger)
    return code, digest(ledger)


@inner
def leave_layer(
    program, state, costs, ledger, observation, plan, layer, slots, generations, landed
):
    """Readers gone; the mover may prefetch. Returns (code, view digest)."""
    release_readers(ledger)
    rows = min(observation.size[1], costs.dense_ns.shape[0] - 1)
    layer_ns = costs.dense_ns[rows] + costs.router_ns + costs.d2h_ns
    cap = layer_cap(layer_ns, costs.copy_ns)
    code, view = open_moves(ledger, plan, cap, slots, generations, landed)
    if code != OK:
        return code, view
    state.clock[LAYER] = layer
    state.clock[LEAVING] = 1
    credits = plan.credits[0]
    move(program, state, costs, ledger, observation, plan)
    return apply_prefetches(ledger, plan, credits), view


@inner
def draft_step(
    program, state, costs, ledger, observation, plan, draft_ns_left, slots, generations, landed
):
    """After a draft step: prefetch only. Returns (code, view digest)."""
    cap = draft_cap(draft_ns_left, costs.copy_ns)
    code, view = open_moves(ledger, plan, cap, slots, generations, landed)
    if code != OK:
        return code, view
    state.clock[LAYER] = -1
    state.clock[LEAVING] = 0
    credits = plan.credits[0]
    move(program, state, costs, ledger, observation, plan)
    return apply_prefetches(ledger, plan, credits), view
