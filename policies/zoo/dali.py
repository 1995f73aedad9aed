"""DALI (arXiv 2602.03495): greedy assignment by workload, cache swapped where windows of passes
end, top-1 prefetch for the next layer."""

from policies.composed import ComposedPolicy
from policies.parts import Assignment, Greedy, NextLayer, Workload


def dali(window_passes: int = 4, per_layer: int = 1) -> ComposedPolicy:
    """`window_passes`: length of a cache window. The residual-corrected gate is replaced by the
    plain next-layer router."""
    mover = NextLayer(1, per_layer=per_layer, then_utility=True)
    return ComposedPolicy("dali", Workload(window_passes), Greedy(keep=False), mover)


def dali_exact(window_passes: int = 4, per_layer: int = 1) -> ComposedPolicy:
    """The same with the exact assignment."""
    mover = NextLayer(1, per_layer=per_layer, then_utility=True)
    return ComposedPolicy("dali_exact", Workload(window_passes), Assignment(keep=False), mover)
