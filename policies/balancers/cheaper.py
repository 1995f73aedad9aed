"""Fiddler's rule (arXiv 2402.07033): each miss by itself, CPU if t_cpu(n) < copy + t_gpu(n), else
streamed. The lanes' load is not looked at."""

from __future__ import annotations

import numpy as np

from policies import api
from policies.balancers.copied import DO_NOT_WAIT, place_residents, place_streamed
from policies.compile import inner


@inner
def place_cheaper(ledger, state, costs, observation, plan, layer, staging):
    """Residents on the GPU, misses by the rule."""
    cpu_ns, gpu_ns = costs.cpu_ns, costs.gpu_ns
    copy_ns = costs.copy_latency_ns + costs.copy_ns
    place_residents(ledger, observation, plan, layer, DO_NOT_WAIT)
    for place in range(observation.size[0]):
        expert = observation.active[place]
        if plan.placement[expert] != api.UNUSED:
            continue
        count = min(observation.counts[expert], cpu_ns.shape[0] - 1)
        if cpu_ns[count] < copy_ns + gpu_ns[count]:
            plan.placement[expert] = api.CPU
        else:
            place_streamed(ledger, state, plan, layer, np.int64(expert), staging)
