"""MoE-Infinity (arXiv 2401.14361): the request's activation matrix, matched to those of past
requests, decides what is prefetched and what is kept; misses are fetched."""

from policies.composed import ComposedPolicy
from policies.parts import FetchMisses, HighestUtility, RequestMatrix


def moe_infinity(capacity: int = 32, proximity: float = 1.0) -> ComposedPolicy:
    """`capacity`: past requests kept; `proximity`: how much less the farthest layer weighs in
    prefetching than the next one."""
    return ComposedPolicy(
        "moe_infinity", RequestMatrix(capacity), FetchMisses(), HighestUtility(proximity),
        quota="pool",
    )  # fmt: skip
