"""Policies that never draft: what speculation itself is worth to them."""

from policies.composed import ComposedPolicy
from policies.parts import (
    AdmitMisses,
    ByResidency,
    FixedWindow,
    Inertia,
    Recency,
    Threshold,
    Unified,
)


def spac_no_speculation() -> ComposedPolicy:
    """MoE-SpAc's parts on one token a pass: the count is a bit, so a level rises on each use
    (up = 1)."""
    return ComposedPolicy(
        "spac_no_speculation", Inertia(levels=5, up=1, down=1), Threshold(), Unified(),
        window=FixedWindow(0), quota="pool",
    )  # fmt: skip


def lru_cpu_no_speculation() -> ComposedPolicy:
    """lru_cpu on one token a pass: the hot-cache forks as they are used."""
    return ComposedPolicy(
        "lru_cpu_no_speculation", Recency(), ByResidency(), AdmitMisses(), window=FixedWindow(0)
    )
