"""Two greedy assignments of one layer; the program and its classes: `assignment`.

DALI (arXiv 2602.03495): experts by falling activation count, residents first since the GPU computes
them while copies are under way; each goes to the lane that would end earlier with it.
HybriMoE (arXiv 2504.05897): everything without a slot on the CPU; then the missing expert of most
rows is copied, and the next, as long as the simulated join gets shorter.
"""

from __future__ import annotations

from policies.balancers.assignment import MISSING, UNDER_WAY, join_of
from policies.compile import kernel


@kernel(allocates=False)
def solve_greedily(
    kind, available, forced, cpu_ns, gpu_ns, gpu_start_ns, link_free_ns, copy_ns, cpu_extra_ns,
    copies_allowed, chosen,
):  # fmt: skip
    """Arguments as in `assignment.solve_assignment`. Fills `chosen`; returns (join ns, new
    copies)."""
    gpu = gpu_start_ns
    cpu = 0
    issued = 0
    for place in range(kind.shape[0]):
        chosen[place] = forced[place]
        gpu += forced[place] * gpu_ns[place]
    for place in range(kind.shape[0]):
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


@kernel(allocates=False)
def solve_by_gain(
    kind, available, forced, cpu_ns, gpu_ns, gpu_start_ns, link_free_ns, copy_ns, cpu_extra_ns,
    copies_allowed, chosen,
):  # fmt: skip
    """HybriMoE's greedy; arguments and result as above. Residents and copies under way are the
    GPU's."""
    for place in range(kind.shape[0]):
        chosen[place] = 0 if kind[place] == MISSING else available[place]
    best, issued = join_of(
        kind, available, cpu_ns, gpu_ns, gpu_start_ns, link_free_ns, copy_ns, cpu_extra_ns, chosen
    )
    for place in range(kind.shape[0]):
        while chosen[place] < available[place] and issued < copies_allowed:
            chosen[place] += 1
            join, copies = join_of(
                kind, available, cpu_ns, gpu_ns, gpu_start_ns, link_free_ns, copy_ns,
                cpu_extra_ns, chosen,
            )  # fmt: skip
            if join >= best:
                chosen[place] -= 1
                return best, issued
            best = join
            issued = copies
    return best, issued
