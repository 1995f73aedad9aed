"""MoE-SpAc as its released code runs: thresholds 5 and 1, prefetch threshold 1, a layer's residents
back to score 0 when it has run, ties by lowest expert, no program and no calibration."""

from policies.composed import ComposedPolicy
from policies.parts import CodeQueue, Inertia, Threshold


def spac_code(levels: int = 5, up: int = 5, down: int = 1) -> ComposedPolicy:
    """Its lanes run one after the other: simulate with lanes=serial for that."""
    return ComposedPolicy(
        "spac_code", Inertia(levels, up, down, calibrate=False), Threshold(levels, fixed_tau=1),
        CodeQueue(levels), quota="pool",
    )  # fmt: skip
