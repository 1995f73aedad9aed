"""Copies at their price: how many misses of a layer are fetched is the number that makes the join,
less the CPU time that the fetched experts will save later, shortest.

A copy slows the CPU down while it runs (contention), so up to FreeToken's q* a fetched miss costs
about what the CPU would have spent on it, and its stay in the slot is a gift; beyond that it
lengthens the layer and must earn that by later uses. Residents stay on the GPU, except those that
would make the GPU the later lane.
"""

from __future__ import annotations

import numpy as np

from policies import api
from policies.balancers.copied import place_kept
from policies.compile import inner
from policies.ledger import FREE, NOWHERE, READY, copies_in_flight, is_ready
from policies.movers.victims import slots_to_spare
from policies.plan import IN_FLIGHT, add_demand
from policies.state import BALANCER

WORTH = 0


@inner
def lowest_utilities(ledger, state, plan, layer, lowest):
    """Fill float64 [n] with the lowest utilities that experts of `layer` may replace, ascending; a
    FREE slot counts as 0. Returns how many there are, at most n."""
    slot_expert, slot_state = ledger.slot_expert, ledger.slot_state
    readers, taken = ledger.slot_readers, plan.taken
    experts = state.utility.shape[1]
    flat = state.flat_utility
    length = 0
    most = lowest.shape[0]
    if most == 0:
        return 0
    for slot in range(slot_state.shape[0]):
        if taken[slot] != 0 or readers[slot] > 0:
            continue
        utility = 0.0
        if slot_state[slot] == READY:
            if state.quota[layer] >= 0 and slot_expert[slot] // experts != layer:
                continue
            utility = flat[slot_expert[slot]]
        elif slot_state[slot] != FREE:
            continue
        if length == most and utility >= lowest[most - 1]:
            continue
        place = min(length, most - 1)
        while place > 0 and lowest[place - 1] > utility:
            lowest[place] = lowest[place - 1]
            place -= 1
        lowest[place] = utility
        length = min(length + 1, most)
    return length


@inner
def cpu_end_ns(work_ns, busy_ns, costs):
    """End of CPU work that begins at dispatch, while the link is busy until `busy_ns`; 0 without
    work. Results are back return_ns later, included."""
    if work_ns == 0:
        return 0
    beside = max(0, busy_ns - costs.dispatch_ns)
    done = beside * costs.contention // 1024
    if work_ns <= done:
        end = costs.dispatch_ns + work_ns * 1024 // costs.contention
    else:
        end = costs.dispatch_ns + beside + work_ns - done
    return end + costs.return_ns


@inner
def gpu_end_ns(resident_ns, waited_ns, link_free_ns, copies, gpu_ns, copy_ns):
    """End of the GPU lane: residents, copies under way, then `copies` new ones of `gpu_ns`
    each."""
    now = resident_ns
    if waited_ns > 0:
        now = max(now, link_free_ns) + waited_ns
    for place in range(copies):
        now = max(now, link_free_ns + (place + 1) * copy_ns) + gpu_ns[place]
    return now


@inner(allocates=True)
def sort_layer(ledger, state, costs, observation, plan, layer, price, residents, order):
    """Put the residents of the layer at hand on the GPU and list them in `residents`, fewest rows
    first; list the misses in `order`, most CPU time saved, now and later, first. Returns their
    numbers, and GPU and CPU time of the active experts under way (0, 0 if there are none)."""
    counts, most = observation.counts, costs.cpu_ns.shape[0] - 1
    base = layer * counts.shape[0]
    worth = np.zeros(order.shape[0])
    held = misses = 0
    waited_gpu_ns = waited_cpu_ns = 0
    for place in range(observation.size[0]):
        expert = observation.active[place]
        count = min(counts[expert], most)
        slot = ledger.expert_slot[base + expert]
        if is_ready(ledger, base + expert):
            plan.placement[expert] = api.GPU
            plan.taken[slot] = 1
            at = held
            while at > 0 and counts[residents[at - 1]] > counts[expert]:
                residents[at] = residents[at - 1]
                at -= 1
            residents[at] = expert
            held += 1
        elif slot != NOWHERE:
            waited_gpu_ns += costs.gpu_ns[count]
            waited_cpu_ns += costs.cpu_ns[count]
        else:
            gain = costs.cpu_ns[count] + price * state.utility[layer, expert]
            at = misses
            while at > 0 and worth[at - 1] < gain:
                worth[at] = worth[at - 1]
                order[at] = order[at - 1]
                at -= 1
            worth[at] = gain
            order[at] = expert
            misses += 1
    return held, misses, waited_gpu_ns, waited_cpu_ns


@inner
def join_ns(
    costs, counts, residents, begin_ns, resident_ns, waited_ns, link_free_ns, copies, gpu_ns,
    work_ns, movable,
):  # fmt: skip
    """(join, residents moved to the CPU) with `copies` new copies and `work_ns` for the CPU:
    residents, at most `movable`, leave the GPU while that makes the join earlier."""
    copy_ns = costs.copy_latency_ns + costs.copy_ns
    busy_ns = link_free_ns + copies * copy_ns
    most = costs.cpu_ns.shape[0] - 1
    moved = 0
    gpu_end = gpu_end_ns(begin_ns + resident_ns, waited_ns, link_free_ns, copies, gpu_ns, copy_ns)
    join = max(gpu_end, cpu_end_ns(work_ns, busy_ns, costs))
    while moved < movable:
        count = min(counts[residents[moved]], most)
        resident_ns -= costs.gpu_ns[count]
        work_ns += costs.cpu_ns[count]
        gpu_end = gpu_end_ns(
            begin_ns + resident_ns, waited_ns, link_free_ns, copies, gpu_ns, copy_ns
        )  # fmt: skip
        other = max(gpu_end, cpu_end_ns(work_ns, busy_ns, costs))
        if other >= join:
            break
        join = other
        moved += 1
    return join, moved


@inner(allocates=True)
def choose_copies(
    ledger, state, costs, observation, plan, layer, price, residents, order, waited_gpu_ns,
    waited_cpu_ns, limit, early,
):  # fmt: skip
    """(new copies, residents moved, 1 to wait for copies under way) of the lowest score: join less
    what the copies save later. The first `limit` of `order` may be copied."""
    counts, most = observation.counts, costs.cpu_ns.shape[0] - 1
    utility = state.utility[layer]
    victims = np.zeros(order.shape[0])
    reachable = lowest_utilities(ledger, state, plan, layer, victims)
    gpu_ns = np.zeros(order.shape[0], np.int64)
    missing_ns = resident_ns = 0
    for place in range(order.shape[0]):
        count = min(counts[order[place]], most)
        gpu_ns[place] = costs.gpu_ns[count]
        missing_ns += costs.cpu_ns[count]
    for place in range(residents.shape[0]):
        resident_ns += costs.gpu_ns[min(counts[residents[place]], most)]
    copy_ns = costs.copy_latency_ns + costs.copy_ns
    # A policy has no clock: the copy that the link is at counts as half done.
    flying = copies_in_flight(ledger)
    link_free_ns = flying * copy_ns - (copy_ns // 2 if flying > 0 else 0)
    begin_ns = -(costs.d2h_ns + costs.decision_layer_ns) if early else 0
    movable = 0 if early else residents.shape[0]
    best_score = np.inf
    best_copies = best_moved = best_waits = 0
    for waits in range(2 if waited_gpu_ns > 0 else 1):
        work_ns = missing_ns + (0 if waits == 1 else waited_cpu_ns)
        later = 0.0
        for copies in range(limit + 1):
            if copies > 0:
                expert = order[copies - 1]
                work_ns -= costs.cpu_ns[min(counts[expert], most)]
                if copies <= reachable:
                    later += max(0.0, utility[expert] - victims[copies - 1])
            join, moved = join_ns(
                costs, counts, residents, begin_ns, resident_ns, waits * waited_gpu_ns,
                link_free_ns, copies, gpu_ns, work_ns, movable,
            )  # fmt: skip
            score = join - price * later
            if score < best_score:
                best_score = score
                best_copies, best_moved, best_waits = copies, moved, waits
    return best_copies, best_moved, best_waits


@inner(allocates=True)
def place_priced(ledger, state, costs, observation, plan, layer, staging, early):
    """Fill the placements and demand copies of the plan. `early`: residents must stay on the
    GPU."""
    active, placement = observation.active, plan.placement
    base = layer * observation.counts.shape[0]
    total = observation.size[0]
    residents = np.zeros(total, np.int64)
    order = np.zeros(total, np.int64)
    price = state.parameters[BALANCER, WORTH] * costs.cpu_ns[1]
    held, misses, waited_gpu_ns, waited_cpu_ns = sort_layer(
        ledger, state, costs, observation, plan, layer, price, residents, order
    )
    residents, order = residents[:held], order[:misses]
    limit = misses
    if staging == 0:
        limit = min(misses, slots_to_spare(ledger, state, plan, layer))
    copies, moved, waits = choose_copies(
        ledger, state, costs, observation, plan, layer, price, residents, order, waited_gpu_ns,
        waited_cpu_ns, limit, early,
    )  # fmt: skip
    for place in range(moved):
        placement[residents[place]] = api.CPU
    for place in range(total):
        expert = active[place]
        if placement[expert] != api.UNUSED or ledger.expert_slot[base + expert] == NOWHERE:
            continue
        if waits == 1:
            placement[expert] = api.FETCH
            add_demand(plan, base + expert, np.int64(IN_FLIGHT))
        else:
            placement[expert] = api.CPU
    for place in range(misses):
        if place < copies:
            place_kept(ledger, state, plan, layer, order[place], staging)
        else:
            placement[order[place]] = api.CPU
