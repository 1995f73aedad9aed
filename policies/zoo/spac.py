"""MoE-SpAc (arXiv 2603.09983): utility from the verify window's counts, threshold program, one
utility for all copies.

The paper's body is not public in a form that could be read; this is a reconstruction from its
abstract, notes and released
code. Boundary calibration and the program exist in the paper only, their form here is ours.
"""

from policies.composed import ComposedPolicy
from policies.parts import AdmitMisses, Inertia, Last, Part, Threshold, Unified


def spac(
    levels: int = 5,
    up: int = 2,
    down: int = 1,
    calibrate: bool = True,
    period: int = 8,
    io_share: float = 1.0,
    fixed_tau: int = 0,
    signal: str = "count",
    inertia: bool = True,
    asynchronous: bool = True,
    quota: str = "pool",
) -> ComposedPolicy:
    """Complete SpAc. Ablations: inertia=false (last pass alone), fixed_tau=1 (no program),
    asynchronous=false (only the
    misses of the layer at hand are copied in), calibrate=false, signal=bit."""
    estimator: Part = Inertia(levels, up, down, calibrate, period) if inertia else Last()
    mover: Part = Unified() if asynchronous else AdmitMisses()
    return ComposedPolicy(
        "spac",
        estimator,
        Threshold(levels, io_share, fixed_tau),
        mover,
        signal=signal,
        quota=quota,
    )
