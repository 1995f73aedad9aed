"""Balancers without a decision: everything on the CPU, or residents on the GPU and every miss on
the CPU."""

from __future__ import annotations

from policies import api
from policies.compile import inner
from policies.ledger import NOWHERE, READY


@inner
def place_all_cpu(observation, plan):
    """Every active expert on the CPU."""
    placement, active = plan.placement, observation.active
    for place in range(observation.size[0]):
        placement[active[place]] = api.CPU


@inner
def place_by_residency(ledger, observation, plan, layer):
    """READY on the GPU, the rest on the CPU; copies still on their way are not waited for."""
    expert_slot, slot_state = ledger.expert_slot, ledger.slot_state
    placement, taken, active = plan.placement, plan.taken, observation.active
    base = layer * placement.shape[0]
    for place in range(observation.size[0]):
        expert = active[place]
        slot = expert_slot[base + expert]
        if slot != NOWHERE and slot_state[slot] == READY:
            placement[expert] = api.GPU
            taken[slot] = 1
        else:
            placement[expert] = api.CPU
