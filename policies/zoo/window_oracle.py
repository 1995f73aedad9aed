"""Same-window oracle: SpAc's balancer and mover with the true counts of the coming pass.
Clairvoyant: a bound."""

from policies.composed import ComposedPolicy
from policies.parts import Threshold, Unified, Upcoming


def window_oracle(levels: int = 32) -> ComposedPolicy:
    """Every expert of the coming window is worth a slot, most rows first; only the link limits
    it."""
    return ComposedPolicy(
        "window_oracle", Upcoming(), Threshold(levels, fixed_tau=1), Unified(), quota="pool"
    )
