"""Balancers without a decision: everything on the CPU, or residents on the GPU and every miss on
the CPU."""

from __future__ import annotations

from policies import api
from policies.compile import kernel
from policies.ledger import is_ready


@kernel
def place_all_cpu(observation, plan):
    """Every active expert on the CPU."""
    for place in range(observation.size[0]):
        plan.placement[observation.active[place]] = api.CPU


@kernel
def place_by_residency(ledger, observation, plan, layer):
    """READY on the GPU, the rest on the CPU; copies still on their way are not waited for."""
    base = layer * observation.counts.shape[0]
    for place in range(observation.size[0]):
        expert = observation.active[place]
        if is_ready(ledger, base + expert):
            plan.placement[expert] = api.GPU
            plan.taken[ledger.expert_slot[base + expert]] = 1
        else:
            plan.placement[expert] = api.CPU
