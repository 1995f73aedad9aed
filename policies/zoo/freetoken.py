"""FreeToken (arXiv 2608.16157): one global LRU; of m misses q* = m B_P / B_H are fetched, the
others run on the CPU at the same time."""

from policies.composed import ComposedPolicy
from policies.parts import Recency, Split, Still


def freetoken() -> ComposedPolicy:
    """Misses of most rows are fetched first. No prefetch."""
    return ComposedPolicy("freetoken", Recency(), Split(), Still(), quota="pool")
