"""Least-Stale eviction (SpecMD, arXiv 2602.03921), with misses fetched: what its layer did not use
in its latest run goes first, and among equals the layer whose next run is farthest."""

from policies.composed import ComposedPolicy
from policies.parts import FetchMisses, Last, Still


def least_stale() -> ComposedPolicy:
    """Temporal (used in the latest run or not) and spatial (distance of the layer) in one order."""
    return ComposedPolicy("least_stale", Last(), FetchMisses(), Still(), signal="bit", quota="pool")
