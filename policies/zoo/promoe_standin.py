"""Stand-in for ProMoE (arXiv 2410.22134): its learned predictors are not public, so the routers of
the next layers predict instead. Per-layer LRU, copies first in first out, misses fetched."""

from policies.composed import ComposedPolicy
from policies.parts import FetchMisses, NextLayer, Recency


def promoe_standin(stride: int = 2) -> ComposedPolicy:
    """`stride`: layers predicted ahead."""
    return ComposedPolicy("promoe_standin", Recency(), FetchMisses(), NextLayer(stride))
