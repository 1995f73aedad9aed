"""Prefill in the compiled engine: beside the policy and its slots, each expert the cheaper way."""

from __future__ import annotations

import numpy as np

from policies import api
from policies.compile import kernel
from policies.ledger import OK
from policies.plan import STAGING
from simulator.compiled_buffers import LAYERS
from simulator.compiled_layer import run_lanes
from simulator.compiled_record import append_layer, append_pass
from simulator.compiled_state import HOST_FREE, NOW, PASS_INDEX, TIMES
from traces.runlog_schema import PREFILL_PHASE

TOO_OFTEN = 50


@kernel
def play_prefill(machine, buffers, costs, rules, layers, experts, prompt):
    """One pass over `prompt`, uint16 [P, L, K]. Returns OK or TOO_OFTEN."""
    clock, copies, slot_copy = machine.clock, machine.copies, machine.slot_copy
    queue, buffer_read = machine.queue, machine.buffer_read
    used, layer_log, views = buffers.used, buffers.layers, buffers.layer_views
    actives, demands_log, prefetch_log = buffers.actives, buffers.demands, buffers.prefetches
    cpu_table, gpu_table, dense_table = costs.cpu_ns, costs.gpu_ns, costs.dense_ns
    duration_ns = costs.copy_latency_ns + costs.copy_ns
    rows, _, width = prompt.shape
    begin_ns = now = clock[NOW]
    counts = np.zeros(experts, np.int32)
    placement = np.zeros(experts, np.int8)
    hit = np.zeros(experts, np.uint8)
    active = np.zeros(experts, np.int32)
    demand_expert = np.zeros(experts, np.int32)
    demand_slot = np.full(experts, STAGING, np.int32)
    demand_gpu_ns = np.zeros(experts, np.int64)
    places = np.zeros(experts, np.int64)
    numbers = np.zeros(experts, np.int64)
    landings = np.zeros(experts, np.int64)
    none32 = np.zeros(0, np.int32)
    none64 = np.zeros(0, np.int64)
    times = np.zeros(TIMES, np.int64)
    for layer in range(layers):
        t0_ns = now
        now += dense_table[rows] + costs.router_ns
        counts[:] = 0
        for row in range(rows):
            for place in range(width):
                counts[prompt[row, layer, place]] += 1
        number = demands = np.int64(0)
        cpu_ns = gpu_busy_ns = np.int64(0)
        for expert in range(experts):
            count = counts[expert]
            if count == 0:
                continue
            if count >= cpu_table.shape[0]:
                return TOO_OFTEN
            active[number] = expert
            number += 1
            streamed_ns = duration_ns + gpu_table[count]
            if rules.staging > 0 and streamed_ns < cpu_table[count]:
                placement[expert] = api.STREAM
                demand_expert[demands] = layer * experts + expert
                demand_gpu_ns[demands] = gpu_table[count]
                gpu_busy_ns += gpu_table[count]
                demands += 1
            else:
                placement[expert] = api.CPU
                cpu_ns += cpu_table[count]
        t1_ns = now
        t2_ns = max(t1_ns + costs.d2h_ns, clock[HOST_FREE])
        clock[HOST_FREE] = t2_ns
        now = run_lanes(
            clock, copies, slot_copy, queue, buffer_read, none64, rules.slots, rules.staging,
            rules.early, rules.serial, demand_expert, demand_slot, demand_gpu_ns, demands, none32,
            none32, none32, 0, 0, 0, cpu_ns, costs.contention, costs.dispatch_ns, costs.return_ns,
            duration_ns, layer, t1_ns, t2_ns, False, places, numbers, landings, times,
        )  # fmt: skip
        views[used[LAYERS], 0] = views[used[LAYERS], 1] = 0
        append_layer(
            used, layer_log, actives, demands_log, prefetch_log, clock[PASS_INDEX], layer, t0_ns,
            t1_ns, t2_ns, gpu_busy_ns, times, 0, 0, 0, active, number, counts, placement, hit,
            demand_expert, demand_slot, demands, none32, none32, 0,
        )  # fmt: skip
    now += costs.pass_ns
    append_pass(
        used, buffers.passes, rules.request, clock[PASS_INDEX], PREFILL_PHASE, 0, 0, rows, 0, 0,
        begin_ns, begin_ns, now, rules.warmup,
    )  # fmt: skip
    clock[PASS_INDEX] += 1
    clock[NOW] = now
    return OK
