"""A layer's plan from the assignment program: classes of equal experts out of the observation, and
back."""

from __future__ import annotations

import numpy as np

from policies import api, kinds
from policies.balancers.assignment import MISSING, RESIDENT, UNDER_WAY, solve_assignment
from policies.balancers.assignment_greedy import solve_by_gain, solve_greedily
from policies.balancers.copied import place_kept, place_streamed
from policies.compile import inner
from policies.ledger import NOWHERE, copies_in_flight, is_ready
from policies.movers.victims import slots_to_spare
from policies.plan import IN_FLIGHT, add_demand
from policies.state import BALANCER

KEEP = 0
CONTENDED = 1
# About 0.2 ms: what is found by then is nearly always optimal, and always legal.
NODE_LIMIT = 20_000


@inner(allocates=True)
def place_assigned(ledger, state, costs, observation, plan, layer, staging, early, solver):
    """Solve the program for `layer` and write its placements and copies into the plan. `early`:
    residents must stay on the GPU; `solver`: kinds.ASSIGNMENT (exact), GREEDY or BY_GAIN."""
    expert_slot, taken = ledger.expert_slot, plan.taken
    counts, active, placement = observation.counts, observation.active, plan.placement
    total = observation.size[0]
    base = layer * counts.shape[0]
    rows = 0
    held = np.zeros(total, np.int64)
    for place in range(total):
        expert = active[place]
        rows = max(rows, counts[expert])
        slot = expert_slot[base + expert]
        if slot == NOWHERE:
            held[place] = MISSING
        elif is_ready(ledger, base + expert):
            taken[slot] = 1
        else:
            held[place] = UNDER_WAY
    members = np.zeros((3, rows + 1), np.int64)
    for place in range(total):
        members[held[place], counts[active[place]]] += 1
    # Classes by kind, most rows first.
    table = np.zeros((7, 3 * rows), np.int64)
    kind, count, available, forced = table[0], table[1], table[2], table[3]
    cpu, gpu, chosen = table[4], table[5], table[6]
    rate = 1024
    if state.parameters[BALANCER, CONTENDED] > 0.0:
        rate = costs.contention
    classes = 0
    for which in range(3):
        for number in range(rows, 0, -1):
            if members[which, number] == 0:
                continue
            kind[classes] = which
            count[classes] = number
            available[classes] = members[which, number]
            if early and which == RESIDENT:
                forced[classes] = available[classes]
            at = min(number, costs.cpu_ns.shape[0] - 1)
            cpu[classes] = costs.cpu_ns[at] * 1024 // rate
            gpu[classes] = costs.gpu_ns[at]
            classes += 1
    copy_ns = costs.copy_latency_ns + costs.copy_ns
    # A policy has no clock: the copy that the link is at counts as half done.
    waiting = copies_in_flight(ledger)
    link_free_ns = waiting * copy_ns - (copy_ns // 2 if waiting > 0 else 0)
    gpu_start_ns = -(costs.d2h_ns + costs.decision_layer_ns) if early else 0
    extra_ns = costs.dispatch_ns + costs.return_ns
    allowed = total
    if staging == 0:
        allowed = slots_to_spare(ledger, state, plan, layer)
    kind, chosen, available, forced = (
        kind[:classes],
        chosen[:classes],
        available[:classes],
        forced[:classes],
    )
    cpu, gpu = cpu[:classes], gpu[:classes]
    if solver == kinds.ASSIGNMENT:
        solve_assignment(
            kind, available, forced, cpu, gpu, gpu_start_ns, link_free_ns, copy_ns, extra_ns,
            allowed, NODE_LIMIT, chosen,
        )  # fmt: skip
    elif solver == kinds.GREEDY:
        solve_greedily(
            kind, available, forced, cpu, gpu, gpu_start_ns, link_free_ns, copy_ns, extra_ns,
            allowed, chosen,
        )  # fmt: skip
    else:
        solve_by_gain(
            kind, available, forced, cpu, gpu, gpu_start_ns, link_free_ns, copy_ns, extra_ns,
            allowed, chosen,
        )  # fmt: skip
    keep = state.parameters[BALANCER, KEEP] > 0.0
    for index in range(classes):
        # Members of a class are equal in time: the ones of highest utility go to the GPU.
        for _ in range(chosen[index]):
            best = np.int64(NOWHERE)
            for place in range(total):
                expert = active[place]
                if (
                    held[place] == kind[index]
                    and counts[expert] == count[index]
                    and placement[expert] == api.UNUSED
                    and (
                        best == NOWHERE or state.utility[layer, expert] > state.utility[layer, best]
                    )
                ):
                    best = expert
            if kind[index] == RESIDENT:
                placement[best] = api.GPU
            elif kind[index] == UNDER_WAY:
                placement[best] = api.FETCH
                add_demand(plan, base + best, np.int64(IN_FLIGHT))
            elif keep:
                place_kept(ledger, state, plan, layer, best, staging)
            else:
                place_streamed(ledger, state, plan, layer, best, staging)
    for place in range(total):
        if placement[active[place]] == api.UNUSED:
            placement[active[place]] = api.CPU
