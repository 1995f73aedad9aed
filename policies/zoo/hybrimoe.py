"""HybriMoE (arXiv 2504.05897): score S <- a TopP(s) + (1 - a) S from router mass, least score
evicted, greedy assignment of every layer, prefetch from the next three layers' predictions."""

from policies.composed import ComposedPolicy
from policies.parts import Average, GreedyGain, NextLayer


def hybrimoe(
    weight: float = 0.5, per_top_k: int = 2, horizon: int = 3, signal: str = "mass"
) -> ComposedPolicy:
    """`weight` is a; TopP keeps per_top_k * top_k scores. signal=count serves traces without router
    weights."""
    return ComposedPolicy(
        "hybrimoe", Average(weight, per_top_k), GreedyGain(), NextLayer(horizon), signal=signal
    )
