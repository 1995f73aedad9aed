"""Per-layer LFRU (frequency over age), misses on the CPU and copied in behind the work."""

from policies.composed import ComposedPolicy
from policies.parts import AdmitMisses, ByResidency, FrequencyRecency


def lfru_cpu() -> ComposedPolicy:
    """The score of an expert is its uses divided by one more than the passes since the last."""
    return ComposedPolicy("lfru_cpu", FrequencyRecency(), ByResidency(), AdmitMisses())
