"""The balancer of MoE-SpAc (arXiv 2603.09983): one integer threshold tau per layer splits hot
(GPU) from cold (CPU).

    minimise   max( sum over level < tau of t_cpu(level), sum over level >= tau of t_gpu(level) )
    subject to  missing experts with level >= tau  <=  copies that the I/O window allows
                experts with level >= tau          <=  slots
                tau in 1..K+1

Levels double as predicted activation counts. Only K + 1 values exist, so counting experts per
level solves it exactly;
`threshold_reference` states the same program for PuLP. Ties go to the larger tau (fewer copies).
"""

from __future__ import annotations

import numpy as np

from policies.compile import inner, kernel
from policies.ledger import NOWHERE
from policies.state import BALANCER, PASS_NS

LEVELS = 0
# Share of the time between two runs of a layer that its prefetches may use; 0 lifts the constraint.
IO_SHARE = 1
FIXED_TAU = 2  # > 0: no program, this threshold


@kernel(allocates=False)
def solve_threshold(members, missing, cpu_ns, gpu_ns, copies_allowed, slots_allowed):
    """Exact solution. members, missing int64 [K + 1]: experts, and experts without a slot, per
    level; cpu_ns, gpu_ns by token
    count. Returns (tau, objective ns)."""
    top = members.shape[0] - 1
    cpu = 0
    for level in range(1, top + 1):
        cpu += members[level] * cpu_ns[min(level, cpu_ns.shape[0] - 1)]
    gpu = 0
    copies = 0
    hot = 0
    best_tau = top + 1
    best = cpu
    for tau in range(top, 0, -1):
        count = min(tau, cpu_ns.shape[0] - 1)
        cpu -= members[tau] * cpu_ns[count]
        gpu += members[tau] * gpu_ns[count]
        copies += missing[tau]
        hot += members[tau]
        if copies > copies_allowed or hot > slots_allowed:
            break
        if max(cpu, gpu) < best:
            best = max(cpu, gpu)
            best_tau = tau
    return best_tau, best


@inner
def choose_threshold(ledger, state, costs, layer, slots):
    """Set tau of `layer` for its next run, from the utilities at hand."""
    fixed = state.parameters[BALANCER, FIXED_TAU]
    if fixed > 0.0:
        state.tau[layer] = int(fixed)
        return
    layers, experts = state.utility.shape
    top = min(int(state.parameters[BALANCER, LEVELS]), state.levels.shape[1] - 1)
    members = state.levels[0, : top + 1]
    missing = state.levels[1, : top + 1]
    members[:] = 0
    missing[:] = 0
    utilities = state.utility[layer]
    slot_of = ledger.expert_slot[layer * experts : (layer + 1) * experts]
    for expert in range(experts):
        level = min(np.int64(top), np.int64(utilities[expert]))
        if level > 0:  # what lies at 0 has no part in the program
            members[level] += 1
            missing[level] += slot_of[expert] == NOWHERE
    share = state.parameters[BALANCER, IO_SHARE]
    copies_allowed = experts
    if share > 0.0:
        copies_allowed = int(share * state.clock[PASS_NS] / (layers * costs.copy_ns)) + 1
    slots_allowed = slots
    if state.quota[layer] >= 0:
        slots_allowed = state.quota[layer]
    tau, _ = solve_threshold(
        members, missing, costs.cpu_ns, costs.gpu_ns, copies_allowed, slots_allowed
    )
    state.tau[layer] = tau
