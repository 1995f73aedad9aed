"""Our own policy: utilities from decayed rates and from the drafted tokens, exact assignment of
every layer, copies by expected use, draft length by measured gain. One fixed parameter set, chosen
on the greedy recording, which no comparison reports."""

from policies.composed import ComposedPolicy
from policies.parts import Assignment, ExpectedGain, FixedWindow, Part, SavedTime, TokenMix


def ours(
    decay: float = 0.8,
    token_weight: float = 0.3,
    patience: float = 1.0,
    margin: float = 0.25,
    horizon: int = 0,
    adaptive_window: bool = True,
    quota: str = "pool",
) -> ComposedPolicy:
    """`horizon` > 0 reads next-layer predictions, where the trace has them."""
    window: Part = ExpectedGain() if adaptive_window else FixedWindow()
    return ComposedPolicy(
        "ours", TokenMix(decay, token_weight, patience=patience), Assignment(),
        SavedTime(margin, horizon), window=window, quota=quota,
    )  # fmt: skip
