"""What a pass takes, as far as a policy can know, and what each of its rows adds to that.

The routing of a pass with many rows also tells what the pass would have cost with fewer: row j adds
the experts that the rows before it did not need. Such differences within one pass are far less
noisy than the times of whole passes, which vary with the text.
"""

from __future__ import annotations

import numpy as np

from policies import api
from policies.compile import inner
from policies.ledger import copies_in_flight
from policies.state import EXPERT_NS, ROW_NS


@inner
def fixed_layer_ns(costs, rows):
    """Time of a layer of `rows` rows without routed experts."""
    rows = min(rows, costs.dense_ns.shape[0] - 1)
    return costs.dense_ns[rows] + costs.router_ns + costs.d2h_ns + costs.decision_layer_ns


@inner(allocates=True)
def note_layer_time(state, costs, ledger, observation, plan, experts):
    """Add to EXPERT_NS what the routed experts of the layer at hand take under its plan, whose
    copies have not begun, and to ROW_NS, by row, what a layer with so many of its rows takes.
    experts int32 [rows, top_k]."""
    state.measured[EXPERT_NS] += planned_experts_ns(costs, ledger, observation, plan)
    added, ready = state.window[ROW_NS], observation.ready
    most = costs.cpu_ns.shape[0] - 1
    counts = np.zeros(ready.shape[0], np.int64)
    cpu = gpu = before = 0
    for row in range(min(experts.shape[0], added.shape[0])):
        for place in range(experts.shape[1]):
            expert = experts[row, place]
            count = min(counts[expert] + 1, most)
            if ready[expert]:
                gpu += costs.gpu_ns[count] - costs.gpu_ns[counts[expert]]
            else:
                cpu += costs.cpu_ns[count] - costs.cpu_ns[counts[expert]]
            counts[expert] = count
        join = gpu
        if cpu > 0:
            join = max(join, cpu + costs.dispatch_ns + costs.return_ns)
        added[row] += join - before
        before = join


@inner
def planned_experts_ns(costs, ledger, observation, plan):
    """The later lane of the layer at hand; CPU work goes slower while copies run."""
    active, counts, placement = observation.active, observation.counts, plan.placement
    most = costs.cpu_ns.shape[0] - 1
    cpu = gpu = waited = copies = 0
    for place in range(observation.size[0]):
        expert = active[place]
        count = min(counts[expert], most)
        if placement[expert] == api.CPU:
            cpu += costs.cpu_ns[count]
        else:
            gpu += costs.gpu_ns[count]
            if placement[expert] != api.GPU:
                waited = costs.gpu_ns[count]
    for place in range(plan.size[0]):
        copies += plan.demand_slot[place] != -1
    copy_ns = costs.copy_latency_ns + costs.copy_ns
    # A policy has no clock: the copy that the link is at counts as half done.
    flying = copies_in_flight(ledger)
    link = (flying + copies) * copy_ns - (copy_ns // 2 if flying > 0 else 0)
    busy = link + plan.size[1] * copy_ns
    if cpu > 0:
        lost = busy - busy * costs.contention // 1024
        cpu = min(cpu * 1024 // costs.contention, cpu + lost)
        cpu += costs.dispatch_ns + costs.return_ns
    if waited > 0:
        gpu = max(gpu, link + waited)
    return max(cpu, gpu)
