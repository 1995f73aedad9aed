"""The compiled engine's loop over the passes of a request: drafting, layers, output head.

Decisions are the kernels that policies.session calls; the times around them are stated here and in
compiled_layer and compiled_link. No Python call inside the loop.
"""

from __future__ import annotations

import numpy as np

from policies import api
from policies.by_reference import by_reference
from policies.compile import kernel
from policies.kernels import draft_step, enter_layer, leave_layer
from policies.ledger import OK
from policies.passes import end_pass, note_token, start_pass
from simulator.compiled_buffers import PASSES
from simulator.compiled_layer import issue_prefetches, run_lanes
from simulator.compiled_link import take_landed
from simulator.compiled_prefill import TOO_OFTEN
from simulator.compiled_record import append_draft, append_layer, append_pass, end_layer
from simulator.compiled_state import COPIES, HOST_FREE, LANDED, NOW, PASS_INDEX, START
from traces.runlog_schema import DECODE_PHASE, NO_LAYER

# What a refusal was about, beside its code.
AT_DRAFT = 0
AT_LAYER = 1
AT_LEAVE = 2
AT_PASS = 3

OTHER_GAMMA = 51  # the trace cannot be played at the window that the policy chose


@kernel(allocates=False)
def play_passes(
    program, state, costs, ledger, observation, plan, rules, machine, buffers, data, scratch,
    pass_copies,
):  # fmt: skip
    """Play passes from `clock[START]` until the request ends, or the next pass may not fit the
    buffers (`pass_copies`: the most that a pass can issue).

    Returns (code, AT_*, layer, draft step or gamma): code OK, TOO_OFTEN, OTHER_GAMMA or that of a
    refused plan.
    """
    state, costs, ledger = by_reference(state), by_reference(costs), by_reference(ledger)
    observation, plan = by_reference(observation), by_reference(plan)
    clock, copies, slot_copy = machine.clock, machine.copies, machine.slot_copy
    queue, buffer_read = machine.queue, machine.buffer_read
    used, pass_log, layer_log = buffers.used, buffers.passes, buffers.layers
    draft_log, layer_views, draft_views = buffers.drafts, buffers.layer_views, buffers.draft_views
    actives, demand_log, prefetch_log = buffers.actives, buffers.demands, buffers.prefetches
    leave_log, draft_prefetch_log = buffers.leaves, buffers.draft_prefetches
    generations, expert_slot = ledger.slot_generation, ledger.expert_slot
    counts, ready, active = observation.counts, observation.ready, observation.active
    observed = observation.size
    placement, size, credits_left = plan.placement, plan.size, plan.credits
    demand_expert, demand_slot = plan.demand_expert, plan.demand_slot
    prefetch_expert, prefetch_slot = plan.prefetch_expert, plan.prefetch_slot
    cpu_table, gpu_table, dense_table = costs.cpu_ns, costs.gpu_ns, costs.dense_ns
    begin, longest = data.begin, data.longest
    gamma_limit, commit_limit = data.gamma_limit, data.commit_limit
    tokens, routed, weighted, predicted = data.tokens, data.experts, data.weights, data.next_layer
    duration_ns = costs.copy_latency_ns + costs.copy_ns
    step_ns = costs.draft_step_ns + rules.step_ns
    to_host_ns = costs.d2h_ns + rules.layer_ns
    layers, width = routed.shape[1], routed.shape[2]
    experts, slots = counts.shape[0], slot_copy.shape[0]

    horizon = min(rules.horizon, predicted.shape[0])
    landed_slots, landed_generations = scratch.landed_slots, scratch.landed_generations
    demand_gpu_ns, places = scratch.demand_gpu_ns, scratch.places
    numbers, landings, times = scratch.numbers, scratch.landings, scratch.times

    end = begin.shape[0]
    now = clock[NOW]
    while clock[START] < end:
        if used[PASSES] == pass_log.shape[0] or clock[COPIES] + pass_copies > copies.shape[0]:
            break
        start = clock[START]
        first_row = begin[start]
        pass_index = clock[PASS_INDEX]
        begin_ns = now
        asked = start_pass(program, state, costs, rules.gamma, tokens[first_row])
        if rules.only_gamma >= 0 and asked != rules.only_gamma:
            return OTHER_GAMMA, AT_PASS, asked
        gamma = min(asked, gamma_limit[start])
        accepted = min(longest[start], gamma, end - start)
        committed = min(accepted + 1, commit_limit[start])
        rows = gamma + 1
        row_experts = scratch.row_experts[:rows]
        row_weights = scratch.row_weights[: rows if weighted.shape[0] > 0 else 0]
        row_predicted = scratch.row_predicted[:horizon, :rows]

        for step in range(gamma):
            now += step_ns
            landed = take_landed(
                clock, queue, slot_copy, generations, now, landed_slots, landed_generations
            )
            clock[LANDED] += landed
            token = tokens[first_row + step + 1]
            if rules.tokens_shown:
                note_token(program, state, token)
            left_ns = (asked - 1 - step) * costs.draft_step_ns
            code, view = draft_step(
                program, state, costs, ledger, observation, plan, left_ns, landed_slots,
                landed_generations, landed,
            )  # fmt: skip
            if code != OK:
                return code, AT_DRAFT, step
            decided_ns = max(now, clock[HOST_FREE]) + costs.decision_draft_ns
            clock[HOST_FREE] = decided_ns
            issue_prefetches(
                clock, copies, slot_copy, queue, generations, prefetch_expert, prefetch_slot,
                size[1], np.int64(NO_LAYER), decided_ns, duration_ns,
            )  # fmt: skip
            line = append_draft(
                used, draft_log, draft_prefetch_log, pass_index, step, token, now,
                costs.decision_draft_ns, clock[LANDED], credits_left[0] + size[1],
                prefetch_expert, prefetch_slot, size[1],
            )  # fmt: skip
            draft_views[line] = view
        draft_end_ns = now

        context_ns = costs.context_ns_per_1024 * (data.first + start) // 1024
        for layer in range(layers):
            t0_ns = now
            t1_ns = t0_ns + dense_table[rows] + context_ns + costs.router_ns
            for row in range(rows):
                for place in range(width):
                    row_experts[row, place] = routed[first_row + row, layer, place]
            for row in range(row_weights.shape[0]):
                for place in range(width):
                    row_weights[row, place] = weighted[first_row + row, layer, place]
            for ahead in range(horizon):
                for row in range(rows):
                    for place in range(width):
                        row_predicted[ahead, row, place] = predicted[
                            ahead, first_row + row, layer, place
                        ]
            landed = take_landed(
                clock, queue, slot_copy, generations, t0_ns, landed_slots, landed_generations
            )
            clock[LANDED] += landed
            code, view = enter_layer(
                program, state, costs, ledger, observation, plan, layer, rules.staging,
                rules.early, row_experts, row_weights, row_predicted, landed_slots,
                landed_generations, landed,
            )  # fmt: skip
            if code != OK:
                return code, AT_LAYER, layer

            residents = resident_ns = cpu_ns = np.int64(0)
            for place in range(observed[0]):
                expert = active[place]
                count = counts[expert]
                if count >= cpu_table.shape[0]:
                    return TOO_OFTEN, AT_LAYER, layer
                if placement[expert] == api.GPU:
                    residents += 1
                    resident_ns += gpu_table[count]
                elif placement[expert] == api.CPU:
                    cpu_ns += cpu_table[count]
            gpu_busy_ns = resident_ns
            for place in range(size[0]):
                expert = demand_expert[place] - layer * experts
                demand_gpu_ns[place] = gpu_table[counts[expert]]
                gpu_busy_ns += demand_gpu_ns[place]
            t2_ns = max(t1_ns + to_host_ns, clock[HOST_FREE]) + costs.decision_layer_ns
            clock[HOST_FREE] = t2_ns
            now = run_lanes(
                clock, copies, slot_copy, queue, buffer_read, generations, slots, rules.staging,
                rules.early, rules.serial, demand_expert, demand_slot, demand_gpu_ns, size[0],
                expert_slot, prefetch_expert, prefetch_slot, size[1], residents, resident_ns,
                cpu_ns, costs.contention, costs.dispatch_ns, costs.return_ns, duration_ns, layer,
                t1_ns, t2_ns, True, places, numbers, landings, times,
            )  # fmt: skip
            line = append_layer(
                used, layer_log, actives, demand_log, prefetch_log, pass_index, layer, t0_ns,
                t1_ns, t2_ns, gpu_busy_ns, times, costs.decision_layer_ns, clock[LANDED],
                credits_left[0] + size[1], active, observed[0], counts, placement, ready,
                demand_expert, demand_slot, size[0], prefetch_expert, prefetch_slot, size[1],
            )  # fmt: skip
            layer_views[line, 0] = view

            landed = take_landed(
                clock, queue, slot_copy, generations, now, landed_slots, landed_generations
            )
            clock[LANDED] += landed
            code, view = leave_layer(
                program, state, costs, ledger, observation, plan, layer, landed_slots,
                landed_generations, landed,
            )  # fmt: skip
            if code != OK:
                return code, AT_LEAVE, layer
            left_at_ns = max(now, clock[HOST_FREE]) + costs.decision_leave_ns
            clock[HOST_FREE] = left_at_ns
            issue_prefetches(
                clock, copies, slot_copy, queue, generations, prefetch_expert, prefetch_slot,
                size[1], layer, left_at_ns, duration_ns,
            )  # fmt: skip
            end_layer(
                used, layer_log, leave_log, line, costs.decision_leave_ns, clock[LANDED],
                credits_left[0] + size[1], prefetch_expert, prefetch_slot, size[1],
            )  # fmt: skip
            layer_views[line, 1] = view

        end_pass(program, state, accepted)
        now += costs.pass_ns
        append_pass(
            used, pass_log, rules.request, pass_index, DECODE_PHASE, data.first + start, gamma,
            rows, accepted, committed, begin_ns, draft_end_ns, now, rules.warmup,
        )  # fmt: skip
        clock[PASS_INDEX] += 1
        clock[START] += committed
        clock[NOW] = now
    return OK, AT_LAYER, 0
