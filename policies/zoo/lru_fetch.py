"""Per-layer LRU, every miss fetched on demand (Mixtral-offloading's cache, arXiv 2312.17238,
without its prefetch)."""

from policies.composed import ComposedPolicy
from policies.parts import FetchMisses, Recency, Still


def lru_fetch() -> ComposedPolicy:
    """Residents first; victims never come from the experts that this layer needs now."""
    return ComposedPolicy("lru_fetch", Recency(), FetchMisses(), Still())
