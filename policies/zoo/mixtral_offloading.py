"""Mixtral-offloading (arXiv 2312.17238): per-layer LRU, misses fetched, one or two experts of the
next layer prefetched."""

from policies.composed import ComposedPolicy
from policies.parts import FetchMisses, NextLayer, Recency


def mixtral_offloading(per_layer: int = 2) -> ComposedPolicy:
    """`per_layer`: experts prefetched for the next layer at a time."""
    return ComposedPolicy(
        "mixtral_offloading", Recency(), FetchMisses(), NextLayer(1, per_layer=per_layer)
    )
