"""Per-layer LFU, misses on the CPU and copied in behind the work."""

from policies.composed import ComposedPolicy
from policies.parts import AdmitMisses, ByResidency, Decayed


def lfu_cpu(decay: float = 1.0) -> ComposedPolicy:
    """decay 1: counts are never forgotten; below 1: decayed LFU."""
    return ComposedPolicy("lfu_cpu", Decayed(decay), ByResidency(), AdmitMisses())
