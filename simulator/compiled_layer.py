"""One layer of the compiled engine, from the plan to the join, as recurrences.

t1: the router is done; t2: the plan is there. Fetched and streamed experts run on the GPU in
landing order after the residents; CPU experts start at t2 + dispatch. Join = max(GPU end,
CPU end + return). Serial lanes: the GPU starts when the CPU's results are back.
"""

from __future__ import annotations

import numpy as np

from policies.compile import inner
from policies.decision import DEMAND, PREFETCH, STREAMED
from policies.plan import IN_FLIGHT, STAGING
from simulator.compiled_link import cpu_end, issue_copy
from simulator.compiled_state import (
    CPU_BEGIN,
    CPU_END,
    GPU_BEGIN,
    GPU_END,
    JOIN,
    SLOT_LANDING,
    SLOT_NUMBER,
)


@inner
def sort_by_number(places, numbers, length):
    """Sort the first `length` of `places` by `numbers` of each, in place."""
    for index in range(1, length):
        place = places[index]
        before = index - 1
        while before >= 0 and numbers[places[before]] > numbers[place]:
            places[before + 1] = places[before]
            before -= 1
        places[before + 1] = place


@inner
def issue_demand(
    clock, copies, slot_copy, queue, buffer_read, generations, expert, slot, streams, slots,
    staging, layer, t2_ns, duration_ns, counted,
):  # fmt: skip
    """Put one demand copy on the link; `streams`: those of this layer before it. `counted`: streams
    get the next generation of their buffer, else -1. Returns the landing."""
    if slot != STAGING:
        return issue_copy(
            clock, copies, slot_copy, queue, expert, np.int64(slot), generations[slot],
            np.int64(DEMAND), layer, t2_ns, np.int64(0), duration_ns,
        )  # fmt: skip
    buffer = streams % staging
    generation = np.int64(-1)
    if counted:
        generations[slots + buffer] += 1
        generation = generations[slots + buffer]
    return issue_copy(
        clock, copies, slot_copy, queue, expert, slots + buffer, generation, np.int64(STREAMED),
        layer, t2_ns, buffer_read[buffer], duration_ns,
    )  # fmt: skip


@inner
def issue_prefetches(
    clock, copies, slot_copy, queue, generations, experts, slots, number, layer, issue_ns,
    duration_ns,
):  # fmt: skip
    """Put the first `number` prefetches of a plan on the link at `issue_ns`."""
    for place in range(number):
        slot = np.int64(slots[place])
        issue_copy(
            clock, copies, slot_copy, queue, experts[place], slot, generations[slot],
            np.int64(PREFETCH), layer, issue_ns, np.int64(0), duration_ns,
        )  # fmt: skip


@inner
def run_lanes(
    clock, copies, slot_copy, queue, buffer_read, generations, rules_slots, staging, early, serial,
    demand_expert, demand_slot, demand_gpu_ns, demands, expert_slot, prefetch_expert,
    prefetch_slot, prefetches, residents, resident_ns, cpu_ns, contention, dispatch_ns, return_ns,
    duration_ns, layer, t1_ns, t2_ns, counted, places, numbers, landings, times,
):  # fmt: skip
    """Play one layer's plan; fills `times` (t2 for a lane without work) and returns the join.

    demand_gpu_ns int64 [demands]: GPU time of each demand copy's expert; residents: their number;
    places, numbers, landings int64 scratch, one entry per demand copy.
    """
    times[GPU_BEGIN] = times[GPU_END] = times[CPU_BEGIN] = times[CPU_END] = t2_ns
    # The part of the plan whose copies do not wait for experts of this very layer.
    streams = np.int64(0)  # typed, or numba compiles what it calls for the constant as well
    sure = 0
    while sure < demands:
        slot = demand_slot[sure]
        if slot == STAGING and streams == staging:
            break
        if slot != IN_FLIGHT:
            landings[sure] = issue_demand(
                clock, copies, slot_copy, queue, buffer_read, generations, demand_expert[sure],
                slot, streams, rules_slots, staging, layer, t2_ns, duration_ns, counted,
            )  # fmt: skip
            if slot == STAGING:
                streams += 1
        sure += 1
    if sure == demands:
        issue_prefetches(
            clock, copies, slot_copy, queue, generations, prefetch_expert, prefetch_slot,
            prefetches, layer, t2_ns, duration_ns,
        )  # fmt: skip
    on_gpu = residents > 0 or demands > 0
    join_ns = t1_ns
    gpu_ns = t2_ns
    if early:
        gpu_ns = t1_ns
    if serial and cpu_ns > 0:
        # Whatever is not on the link yet waits for the GPU, which waits for the CPU.
        times[CPU_BEGIN] = t2_ns + dispatch_ns
        times[CPU_END] = cpu_end(clock, copies, times[CPU_BEGIN], cpu_ns, contention)
        gpu_ns = times[CPU_END] + return_ns
        join_ns = gpu_ns
    if on_gpu:
        begun = residents > 0
        times[GPU_BEGIN] = gpu_ns
        gpu_ns += resident_ns
        if demands > 0:
            gpu_ns = max(gpu_ns, t2_ns)
        flying = 0
        for place in range(demands):
            if demand_slot[place] == IN_FLIGHT:
                slot = expert_slot[demand_expert[place]]
                places[flying] = place
                numbers[place] = slot_copy[slot, SLOT_NUMBER]
                landings[place] = slot_copy[slot, SLOT_LANDING]
                flying += 1
        sort_by_number(places, numbers, flying)
        for place in range(demands):
            if demand_slot[place] != IN_FLIGHT:
                places[flying] = place
                flying += 1
        streamed = np.int64(0)
        for index in range(demands):
            place = places[index]
            slot = demand_slot[place]
            if slot != IN_FLIGHT and place >= sure:
                landings[place] = issue_demand(
                    clock, copies, slot_copy, queue, buffer_read, generations,
                    demand_expert[place], slot, streamed, rules_slots, staging, layer, t2_ns,
                    duration_ns, counted,
                )  # fmt: skip
            gpu_ns = max(gpu_ns, landings[place])
            if not begun:
                times[GPU_BEGIN] = gpu_ns
                begun = True
            gpu_ns += demand_gpu_ns[place]
            if slot == STAGING:
                buffer_read[streamed % staging] = gpu_ns
                streamed += 1
        times[GPU_END] = gpu_ns
        join_ns = max(join_ns, gpu_ns)
        if sure < demands:
            issue_prefetches(
                clock, copies, slot_copy, queue, generations, prefetch_expert, prefetch_slot,
                prefetches, layer, t2_ns, duration_ns,
            )  # fmt: skip
    if cpu_ns > 0 and not serial:
        times[CPU_BEGIN] = t2_ns + dispatch_ns
        times[CPU_END] = cpu_end(clock, copies, times[CPU_BEGIN], cpu_ns, contention)
        join_ns = max(join_ns, times[CPU_END] + return_ns)
    times[JOIN] = join_ns
    return join_ns
