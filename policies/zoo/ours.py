"""Our own policy: expected uses learned while running, copies at their price, draft length by
expected gain. One fixed parameter set, chosen on the development half of the cells (see
experiments/results/cells/leads.md)."""

from policies.composed import ComposedPolicy
from policies.parts import ExpectedGain, FixedWindow, Part, Priced, Reuse, SavedTime


def ours(
    decay: float = 0.95,
    discount: float = 0.7,
    token_weight: float = 0.15,
    worth: float = 0.7,
    margin: float = 2.0,
    idle_margin: float = 0.7,
    horizon: int = 0,
    adaptive_window: bool = True,
    quota: str = "pool",
) -> ComposedPolicy:
    """`horizon` > 0 reads next-layer predictions, where the trace has them."""
    window: Part = ExpectedGain() if adaptive_window else FixedWindow()
    return ComposedPolicy(
        "ours", Reuse(decay, token_weight, discount=discount), Priced(worth),
        SavedTime(margin, horizon, idle_margin), window=window, quota=quota,
    )  # fmt: skip
