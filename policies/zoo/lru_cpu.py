"""Per-layer LRU, misses computed on the CPU and copied in behind the work (llama.cpp hot-cache
forks, PR 27861)."""

from policies.composed import ComposedPolicy
from policies.parts import AdmitMisses, ByResidency, Recency


def lru_cpu() -> ComposedPolicy:
    """Nothing waits for a copy."""
    return ComposedPolicy("lru_cpu", Recency(), ByResidency(), AdmitMisses())
