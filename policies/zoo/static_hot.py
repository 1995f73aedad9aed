"""Static hot set: the experts most used in the first passes stay on the GPU, every other on the
CPU."""

from policies.composed import ComposedPolicy
from policies.parts import ByResidency, HighestUtility, StaticProfile


def static_hot(profile_passes: int = 16) -> ComposedPolicy:
    """Profile, then freeze. No foreknowledge: the profile is the beginning of the run itself."""
    return ComposedPolicy(
        "static_hot", StaticProfile(profile_passes), ByResidency(), HighestUtility()
    )
