"""Fate (arXiv 2502.12224): the previous layer's gate input predicts the next layer's experts; the
cache favours shallow layers; misses are fetched."""

from policies.composed import ComposedPolicy
from policies.parts import Decayed, FetchMisses, NextLayer, Shallow


def fate(bias: float = 0.5, decay: float = 0.9) -> ComposedPolicy:
    """`bias`: the first layer gets (1 + bias) times the mean number of slots. Decayed counts stand
    for its ARC (recency and frequency together)."""
    return ComposedPolicy("fate", Decayed(decay), FetchMisses(), NextLayer(1), quota=Shallow(bias))
