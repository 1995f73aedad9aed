"""KTransformers (SOSP 2025) with a static GPU expert mask: the globally most frequent experts on
the GPU, all others on the CPU, nothing moves."""

from policies.composed import ComposedPolicy
from policies.parts import ByResidency, HighestUtility, StaticProfile


def ktransformers(profile_passes: int = 16) -> ComposedPolicy:
    """As static_hot, but ranked over all layers at once, as kt-kernel's mask is."""
    return ComposedPolicy(
        "ktransformers", StaticProfile(profile_passes), ByResidency(), HighestUtility(),
        quota="pool",
    )  # fmt: skip
