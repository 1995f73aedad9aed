"""Which drafted tokens are accepted: the equality rule and ordinary rejection sampling, as pure
functions.

Rejection sampling: Leviathan et al. 2023 and Chen et al. 2023. It keeps the target's distribution
only if q is the very distribution that the draft tokens were drawn from, so both p and q come from
`distribution`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Probabilities = NDArray[np.float64]


def accepted_prefix(drafts: Sequence[int], choices: Sequence[int]) -> int:
    """Equality rule: drafts[i] is accepted iff it and all before it equal the target's choice at
    their place.
    """
    for place, (draft, choice) in enumerate(zip(drafts, choices, strict=False)):
        if draft != choice:
            return place
    return len(drafts)


def distribution(logits: NDArray[np.float32], temperature: float) -> Probabilities:
    """Softmax of logits / temperature, float64, over the last axis; exactly 0 for -inf."""
    scaled = logits.astype(np.float64) / temperature
    weights = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def acceptance_probability(p: Probabilities, q: Probabilities, token: int) -> float:
    """Chance that `token`, drawn from q, is accepted: min(1, p / q); 0 where p is 0."""
    if not q[token] > 0.0:
        # Judged by another q than it was drawn from: the text would not follow p any more.
        raise ValueError(f"token {token} has q = {float(q[token])} and cannot have been drawn")
    return min(1.0, float(p[token]) / float(q[token]))


def residual(p: Probabilities, q: Probabilities) -> Probabilities:
    """What is drawn from after a rejection: max(p - q, 0), normalised. p and q are left as they
    are.
    """
    surplus = np.maximum(p - q, 0.0)
    total = surplus.sum()
    return (
        surplus / total if total > 0.0 else p.copy()
    )  # p = q up to rounding: a rejection cannot happen


def draw(p: Probabilities, uniform: float) -> int:
    """The token whose interval of the cumulative distribution holds `uniform`, never one with p =
    0.
    """
    cumulative = np.cumsum(p)
    place = int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"))
    return min(place, int(np.flatnonzero(p)[-1]))


def reject(
    p: Probabilities, q: Probabilities, drafts: Sequence[int], uniforms: NDArray[np.float64]
) -> tuple[int, int]:
    """Rejection sampling of one window.

    p [gamma + 1, vocabulary] of the target, q [gamma, vocabulary] that the drafts were drawn from,
    gamma + 1 uniform numbers. Returns how many drafts are accepted and the token after them.
    """
    for place, draft in enumerate(drafts):
        if uniforms[place] >= acceptance_probability(p[place], q[place], draft):
            # A new uniform number: the one above is conditioned on the rejection.
            return place, draw(residual(p[place], q[place]), float(uniforms[-1]))
    return len(drafts), draw(p[len(drafts)], float(uniforms[-1]))
