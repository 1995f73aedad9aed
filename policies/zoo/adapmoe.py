"""AdapMoE (arXiv 2408.10284) without its expert skipping: slots per layer by a dynamic program over
measured miss curves, LRU in each layer, next-layer prefetch, misses fetched."""

from policies.composed import ComposedPolicy
from policies.parts import FetchMisses, MissCurves, NextLayer, Recency


def adapmoe(profile_passes: int = 16, horizon: int = 2) -> ComposedPolicy:
    """`profile_passes`: passes measured before the slots are divided; `horizon`: layers ahead."""
    return ComposedPolicy(
        "adapmoe", Recency(), FetchMisses(), NextLayer(horizon), quota=MissCurves(profile_passes)
    )
