"""Writing rows into the log buffers, from compiled code. No physics."""

from __future__ import annotations

from policies.compile import inner
from simulator.compiled_buffers import (
    ACTIVES,
    DEMANDS,
    DRAFT_PREFETCHES,
    DRAFTS,
    LAYERS,
    LEAVES,
    LISTED_ACTIVE,
    LISTED_DEMAND,
    LISTED_DRAFT,
    LISTED_LEAVE,
    LISTED_PREFETCH,
    PASSES,
    PREFETCHES,
)
from simulator.compiled_state import CPU_BEGIN, CPU_END, GPU_BEGIN, GPU_END, JOIN


@inner
def append_pairs(table, first, experts, slots, number):
    """Append (expert, slot) pairs to a list table after row `first`. Returns the rows in use."""
    for place in range(number):
        table[first + place, 0] = experts[place]
        table[first + place, 1] = slots[place]
    return first + number


@inner
def append_actives(table, first, active, number, counts, placement, hit):
    """Append the active experts of a layer with counts, placement and hits (by expert)."""
    for place in range(number):
        expert = active[place]
        table[first + place, 0] = expert
        table[first + place, 1] = counts[expert]
        table[first + place, 2] = placement[expert]
        table[first + place, 3] = hit[expert]
    return first + number


@inner
def append_layer(
    used, layers, actives, demands, prefetches, pass_index, layer, t0_ns, t1_ns, t2_ns,
    gpu_busy_ns, times, decision_ns, landed, credits, active, active_number, counts, placement,
    hit, demand_expert, demand_slot, demand_number, prefetch_expert, prefetch_slot,
    prefetch_number,
):  # fmt: skip
    """Append a layer with the decision at its start; end_layer adds the one at its end. Returns its
    row."""
    row = used[LAYERS]
    used[LAYERS] += 1
    line = layers[row]
    line[0] = pass_index
    line[1] = layer
    line[2] = t0_ns
    line[3] = t1_ns
    line[4] = t2_ns
    line[5] = times[GPU_BEGIN]
    line[6] = times[GPU_END]
    line[7] = gpu_busy_ns
    line[8] = times[CPU_BEGIN]
    line[9] = times[CPU_END]
    line[10] = times[CPU_END] - times[CPU_BEGIN]
    line[11] = times[JOIN]
    line[12] = decision_ns
    line[13] = 0
    line[14] = landed
    line[15] = credits
    line[16] = 0
    line[17] = 0
    line[LISTED_ACTIVE] = active_number
    line[LISTED_DEMAND] = demand_number
    line[LISTED_PREFETCH] = prefetch_number
    line[LISTED_LEAVE] = 0
    used[ACTIVES] = append_actives(
        actives, used[ACTIVES], active, active_number, counts, placement, hit
    )
    used[DEMANDS] = append_pairs(demands, used[DEMANDS], demand_expert, demand_slot, demand_number)
    used[PREFETCHES] = append_pairs(
        prefetches, used[PREFETCHES], prefetch_expert, prefetch_slot, prefetch_number
    )
    return row


@inner
def end_layer(
    used, layers, leaves, row, decision_ns, landed, credits, prefetch_expert, prefetch_slot, number
):
    """Add the decision after the join to the layer in `row`."""
    line = layers[row]
    line[13] = decision_ns
    line[16] = landed
    line[17] = credits
    line[LISTED_LEAVE] = number
    used[LEAVES] = append_pairs(leaves, used[LEAVES], prefetch_expert, prefetch_slot, number)


@inner
def append_draft(
    used, drafts, draft_prefetches, pass_index, step, token, time_ns, decision_ns, landed, credits,
    prefetch_expert, prefetch_slot, number,
):  # fmt: skip
    """Append a draft step. Returns its row."""
    row = used[DRAFTS]
    used[DRAFTS] += 1
    line = drafts[row]
    line[0] = pass_index
    line[1] = step
    line[2] = token
    line[3] = time_ns
    line[4] = decision_ns
    line[5] = landed
    line[6] = credits
    line[LISTED_DRAFT] = number
    used[DRAFT_PREFETCHES] = append_pairs(
        draft_prefetches, used[DRAFT_PREFETCHES], prefetch_expert, prefetch_slot, number
    )
    return row


@inner
def append_pass(
    used, passes, request, pass_index, phase, start, gamma, rows, accepted, committed, begin_ns,
    draft_end_ns, end_ns, warmup,
):  # fmt: skip
    """Append a pass that is over."""
    line = passes[used[PASSES]]
    used[PASSES] += 1
    line[0] = request
    line[1] = pass_index
    line[2] = phase
    line[3] = start
    line[4] = gamma
    line[5] = rows
    line[6] = accepted
    line[7] = committed
    line[8] = begin_ns
    line[9] = draft_end_ns
    line[10] = end_ns
    line[11] = warmup
