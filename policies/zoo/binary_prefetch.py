"""Binary prefetch: the next layer's experts as predicted by its router on this layer's input, LRU,
misses fetched."""

from policies.composed import ComposedPolicy
from policies.parts import FetchMisses, NextLayer, Recency


def binary_prefetch(horizon: int = 1) -> ComposedPolicy:
    """A prediction is a set: active or not, whatever the number of rows (signal BIT)."""
    return ComposedPolicy(
        "binary_prefetch", Recency(), FetchMisses(), NextLayer(horizon), signal="bit"
    )
