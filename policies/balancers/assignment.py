"""The full assignment program of one layer, solved exactly on classes of equal experts.

    minimise   join = max(end of the GPU lane, end of the CPU lane), then the number of copies
    where      residents (and copies under way) may run on the GPU or on the CPU,
               missing experts may be copied in (FETCH or STREAM: equal in time) or run on the CPU
               GPU lane: residents one after another from `gpu_start_ns`; then copies under way, all
               landed at `link_free_ns`; then new copies, number j landed at link_free + j * copy_ns
               CPU lane: all CPU work, and `cpu_extra_ns` (dispatch and return) if there is any
               at most `copies_allowed` new copies

Time 0 is the moment the plan is there (t2). Simplifications against the engines: CPU work is not
slowed by a busy link, staging buffers never make a copy wait, and copies under way land together.

Equal copy times make it a two-machine flow shop whose best order is decreasing GPU time (Johnson),
and costs depend on the activation count alone: the search is over how many experts of each class
the GPU gets, depth first, with a bound that is nearly always tight.
"""

from __future__ import annotations

import numpy as np

from policies.compile import kernel

RESIDENT = 0
UNDER_WAY = 1
MISSING = 2

NO_LIMIT = 1 << 60


@kernel
def solve_assignment(
    kind, available, forced, cpu_ns, gpu_ns, gpu_start_ns, link_free_ns, copy_ns, cpu_extra_ns,
    copies_allowed, node_limit, chosen,
):  # fmt: skip
    """Classes, all int64 [classes]: kind (RESIDENT, UNDER_WAY, MISSING, in this order; MISSING by
    falling GPU and CPU time), members available, members forced onto the GPU (RESIDENT only), CPU
    and GPU time of one member. Fills `chosen` int64 [classes], members on the GPU; returns (join
    ns, new copies, nodes searched). After `node_limit` nodes the best plan so far is returned."""
    classes = kind.shape[0]
    if classes == 0:
        return gpu_start_ns, 0, 0
    first_missing = classes
    missing = 0
    for place in range(classes - 1, -1, -1):
        if kind[place] == MISSING:
            first_missing = place
            missing += available[place]
    # saved[k]: CPU time that copying the k largest missing experts saves; begin[p]: missing experts
    # before class p.
    scratch = np.zeros((8, max(missing, classes) + 1), np.int64)
    saved, begin = scratch[0], scratch[1]
    least_gpu = 0
    count = 0
    for place in range(classes):
        begin[place] = count
        if place >= first_missing:
            for _ in range(available[place]):
                saved[count + 1] = saved[count] + cpu_ns[place]
                count += 1
            least_gpu = gpu_ns[place]
    begin[classes] = count
    # Of the classes from p on that are not missing: GPU time of forced and of free members, and the
    # least CPU time per GPU time at which a free member can leave the GPU.
    forced_gpu, free_gpu = scratch[2], scratch[3]
    ratio = np.zeros(classes + 1)
    ratio[:] = 1e18
    for place in range(first_missing - 1, -1, -1):
        free = available[place] - forced[place]
        forced_gpu[place] = forced_gpu[place + 1] + forced[place] * gpu_ns[place]
        free_gpu[place] = free_gpu[place + 1] + free * gpu_ns[place]
        ratio[place] = ratio[place + 1]
        if free > 0 and gpu_ns[place] > 0:
            ratio[place] = min(ratio[place], cpu_ns[place] / gpu_ns[place])
    best = NO_LIMIT
    best_copies = NO_LIMIT
    take, clock, copies, work = scratch[4], scratch[5], scratch[6], scratch[7]
    clock[0] = gpu_start_ns
    place = 0
    take[0] = available[0]
    nodes = 0
    while place >= 0:
        number = take[place]
        if number < forced[place]:
            place -= 1
            if place >= 0:
                take[place] -= 1
            continue
        now = clock[place]
        issued = copies[place]
        cpu = work[place] + (available[place] - number) * cpu_ns[place]
        if kind[place] == MISSING:
            if issued + number > copies_allowed:
                take[place] = copies_allowed - issued
                continue
            for _ in range(number):
                issued += 1
                now = max(now, link_free_ns + issued * copy_ns) + gpu_ns[place]
        elif kind[place] == UNDER_WAY:
            if number > 0:
                now = max(now, link_free_ns) + number * gpu_ns[place]
        else:
            now += number * gpu_ns[place]
        nodes += 1
        if nodes > node_limit and best < NO_LIMIT:
            break
        following = place + 1
        # The largest k missing experts are copied next: cheapest for the CPU; each lands no
        # earlier and computes no faster than assumed: cheapest for the GPU.
        start = begin[following]
        rest = missing - start
        base = now + forced_gpu[following]
        movable = free_gpu[following]
        promising = False
        for more in range(min(rest, copies_allowed - issued) + 1):
            gpu_end = base + more * least_gpu
            left = cpu + saved[missing] - saved[start + more]
            join = gpu_end
            if more > 0:
                join = max(join, link_free_ns + (issued + more) * copy_ns + least_gpu)
            if join > best:
                break
            if left > 0:
                join = max(join, left + cpu_extra_ns)
            full = gpu_end + movable
            if full > join:
                # Moving free members to the CPU pays at least `ratio` there per GPU time saved.
                extra = cpu_extra_ns if left > 0 or ratio[following] > 0.0 else 0
                balanced = (ratio[following] * full + left + extra) / (1.0 + ratio[following])
                if balanced > join:
                    join = min(full, max(join, int(balanced) - 1))
            if join < best or (join == best and issued + more < best_copies):
                promising = True
                break
        if not promising:
            take[place] -= 1
            continue
        if following == classes:
            join = now
            if cpu > 0:
                join = max(join, cpu + cpu_extra_ns)
            best = join
            best_copies = issued
            for other in range(classes):
                chosen[other] = take[other]
            take[place] -= 1
            continue
        place = following
        clock[place] = now
        copies[place] = issued
        work[place] = cpu
        take[place] = available[place]
    return best, best_copies, nodes


@kernel(allocates=False)
def join_of(
    kind, available, cpu_ns, gpu_ns, gpu_start_ns, link_free_ns, copy_ns, cpu_extra_ns, chosen
):
    """(join ns, new copies) of a given assignment under the program above."""
    now = gpu_start_ns
    cpu = 0
    issued = 0
    for place in range(kind.shape[0]):
        number = chosen[place]
        cpu += (available[place] - number) * cpu_ns[place]
        if kind[place] == MISSING:
            for _ in range(number):
                issued += 1
                now = max(now, link_free_ns + issued * copy_ns) + gpu_ns[place]
        elif kind[place] == UNDER_WAY and number > 0:
            now = max(now, link_free_ns) + number * gpu_ns[place]
        elif kind[place] == RESIDENT:
            now += number * gpu_ns[place]
    if cpu > 0:
        now = max(now, cpu + cpu_extra_ns)
    return now, issued
