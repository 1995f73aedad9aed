"""Fiddler (arXiv 2402.07033): the most popular experts stay on the GPU; each miss goes to the CPU
if that is faster than copying and computing it, else it is streamed."""

from policies.composed import ComposedPolicy
from policies.parts import Cheaper, HighestUtility, StaticProfile


def fiddler(profile_passes: int = 16) -> ComposedPolicy:
    """Popularity is measured in the first passes and shared by all layers (one pool)."""
    return ComposedPolicy(
        "fiddler", StaticProfile(profile_passes), Cheaper(), HighestUtility(), quota="pool"
    )
