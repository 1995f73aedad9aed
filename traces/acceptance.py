"""How many drafted tokens are accepted: counted from match flags, or drawn for text traces."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError

Acceptance = float | Sequence[float]


def leading_matches(match: NDArray[np.bool_]) -> NDArray[np.int64]:
    """a of each window: the number of leading true flags along the last axis."""
    counted: NDArray[np.int64] = np.cumprod(match, axis=-1, dtype=np.int64).sum(axis=-1)
    return counted


def acceptance_profile(acceptance: Acceptance, gamma: int) -> NDArray[np.float64]:
    """P(d_i accepted | d_1..d_{i-1} accepted) for i = 1..gamma; the last of a list repeats."""
    listed = [acceptance] if isinstance(acceptance, int | float) else list(acceptance)
    if not listed or not all(0.0 <= value <= 1.0 for value in listed):
        raise UserError(
            f"acceptance={acceptance!r}: need one probability in 0..1, or a list of them, "
            "e.g. acceptance=0.75 or acceptance=[0.8,0.7,0.6]"
        )
    profile = np.full(gamma, float(listed[-1]))
    profile[: len(listed)] = listed[:gamma]
    return profile


def uniform_draws(seed: int, request: int, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """One number in [0, 1) per text position, a pure function of (seed, request, position).

    Keyed and not drawn in sequence, so that the window size never changes which token is accepted.
    """
    key = _mix(np.array([seed & 0xFFFFFFFFFFFFFFFF], np.uint64))
    key = _mix(key ^ np.uint64(request & 0xFFFFFFFF))
    mixed = _mix(_mix(key ^ positions.astype(np.uint64)))
    draws: NDArray[np.float64] = (mixed >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return draws


def leading_draws(draws: NDArray[np.float64], profile: NDArray[np.float64]) -> NDArray[np.int64]:
    """Drafts that each position accepts if the window is long enough, int64 [n]: the leading i with
    draws[t + 1 + i] < profile[i], never beyond the last position."""
    longest = np.zeros(len(draws), np.int64)
    for place in range(min(len(profile), len(draws) - 1)):
        drawn = draws[place + 1 :] < profile[place]
        reached = longest[: len(drawn)] == place
        longest[: len(drawn)] += reached & drawn
    return longest


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of splitmix64, which is a bijection with good avalanche."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = value ^ (value >> np.uint64(31))
    return mixed
