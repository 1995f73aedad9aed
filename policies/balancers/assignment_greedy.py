"""Greedy assignment of one layer, as DALI (arXiv 2602.03495) and HybriMoE (arXiv 2504.05897) do it.

Experts by falling activation count; each goes to the lane that would end earlier with it. A copy
counts on the GPU lane from its landing. The program and its classes: `assignment`.
"""

from __future__ import annotations

from policies.balancers.assignment import MISSING, UNDER_WAY, join_of
from policies.compile import kernel


@kernel
def solve_greedily(
    kind, available, forced, rows, cpu_ns, gpu_ns, gpu_start_ns, link_free_ns, copy_ns,
    cpu_extra_ns, copies_allowed, chosen,
):  # fmt: skip
    """Arguments as in `assignment.solve_assignment`, with rows int64 [classes], the activation
    count of each class. Fills `chosen`; returns (join ns, new copies)."""
    classes = kind.shape[0]
    gpu = gpu_start_ns
    cpu = 0
    issued = 0
    highest = 0
    for place in range(classes):
        chosen[place] = forced[place]
        gpu += forced[place] * gpu_ns[place]
        highest = max(highest, rows[place])
    for count in range(highest, -1, -1):
        for place in range(classes):
            if rows[place] != count:
                continue
            for _ in range(available[place] - forced[place]):
                landed = gpu
                if kind[place] == UNDER_WAY:
                    landed = max(gpu, link_free_ns)
                elif kind[place] == MISSING:
                    landed = max(gpu, link_free_ns + (issued + 1) * copy_ns)
                if kind[place] == MISSING and issued >= copies_allowed:
                    cpu += cpu_ns[place]
                elif landed + gpu_ns[place] < cpu + cpu_ns[place] + cpu_extra_ns:
                    gpu = landed + gpu_ns[place]
                    chosen[place] += 1
                    if kind[place] == MISSING:
                        issued += 1
                else:
                    cpu += cpu_ns[place]
    return join_of(
        kind, available, cpu_ns, gpu_ns, gpu_start_ns, link_free_ns, copy_ns, cpu_extra_ns, chosen
    )
