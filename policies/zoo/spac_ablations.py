"""MoE-SpAc with one part less: the paper's three ablations, and calibration switched off."""

from policies.composed import ComposedPolicy
from policies.zoo.spac import spac


def _named(name: str, policy: ComposedPolicy) -> ComposedPolicy:
    return ComposedPolicy(
        name, policy.estimator, policy.balancer, policy.mover, policy.signal, policy.window,
        policy.quota,
    )  # fmt: skip


def spac_no_inertia() -> ComposedPolicy:
    """The last pass alone is the utility."""
    return _named("spac_no_inertia", spac(inertia=False))


def spac_no_balancer() -> ComposedPolicy:
    """Threshold 1 always, in place of the program."""
    return _named("spac_no_balancer", spac(fixed_tau=1))


def spac_no_async() -> ComposedPolicy:
    """Only the misses of the layer at hand are copied in."""
    return _named("spac_no_async", spac(asynchronous=False))


def spac_no_calibration() -> ComposedPolicy:
    """Boundaries stay as given."""
    return _named("spac_no_calibration", spac(calibrate=False))
