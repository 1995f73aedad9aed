"""Accelerate-style offload: nothing is kept, every active expert is copied for its layer and
dropped. Accelerate copies whole layers; a plan here can only place active experts, so this is
kinder to it."""

from policies.composed import ComposedPolicy
from policies.parts import NoEstimator, Still, StreamMisses


def stream_active() -> ComposedPolicy:
    """Slots are not used, only the staging buffers."""
    return ComposedPolicy("stream_active", NoEstimator(), StreamMisses(), Still())
