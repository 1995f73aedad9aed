"""Our own parts with the true uses to come instead of learned ones. Clairvoyant: a bound."""

from policies.composed import ComposedPolicy
from policies.parts import Priced, SavedTime, UsesToCome


def foresight(
    discount: float = 0.6, worth: float = 1.0, margin: float = 1.0, idle_margin: float = 0.05
) -> ComposedPolicy:
    """What better prediction could still gain under the balancer and mover of `ours`."""
    return ComposedPolicy(
        "foresight", UsesToCome(discount), Priced(worth),
        SavedTime(margin, idle_margin=idle_margin), quota="pool",
    )  # fmt: skip
