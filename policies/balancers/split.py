"""FreeToken's split (arXiv 2608.16157): of m misses, q* are fetched while the CPU computes the
others; the link's and the host's bandwidth decide how many."""

from __future__ import annotations

import numpy as np

from policies import api
from policies.balancers.copied import WAIT, place_kept, place_residents
from policies.compile import inner


@inner
def split_misses(misses, cpu_ns, copy_ns):
    """q* = m * B_P / B_H rounded down, at most m. Both bandwidths move the same expert bytes, so
    their ratio is that of the times: one CPU expert (one row, bound by host memory) to one copy."""
    return min(misses, misses * cpu_ns // max(copy_ns, 1))


@inner
def place_split(ledger, state, costs, observation, plan, layer, staging):
    """Residents on the GPU, copies under way waited for, the misses of most rows fetched."""
    active, counts = observation.active, observation.counts
    place_residents(ledger, observation, plan, layer, WAIT)
    misses = np.int64(0)
    highest = 0
    for place in range(observation.size[0]):
        if plan.placement[active[place]] == api.UNUSED:
            misses += 1
            highest = max(highest, counts[active[place]])
    copies = split_misses(misses, costs.cpu_ns[1], costs.copy_latency_ns + costs.copy_ns)
    for count in range(highest, 0, -1):
        for place in range(observation.size[0]):
            expert = active[place]
            if plan.placement[expert] != api.UNUSED or counts[expert] != count:
                continue
            if copies > 0:
                place_kept(ledger, state, plan, layer, np.int64(expert), staging)
                copies -= 1
            else:
                plan.placement[expert] = api.CPU
