"""Belady with bypass: fetch every miss unless it would itself be the first victim. Clairvoyant: a
bound, not a policy."""

from policies.composed import ComposedPolicy
from policies.parts import FetchMisses, NextUse, Still


def belady() -> ComposedPolicy:
    """Farthest next use is dropped, over the whole pool."""
    return ComposedPolicy("belady", NextUse(), FetchMisses(bypass=True), Still(), quota="pool")
