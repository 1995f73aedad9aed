"""Information in bits: entropy of a signal, and what one signal says about another.

Signals are whole numbers [n, C]: n passes, C cells (an expert of a layer). Everything is estimated
per cell from histograms.
"""

import numpy as np
from numpy.typing import NDArray

Signal = NDArray[np.int64]


def entropy_bits(histogram: NDArray[np.int64]) -> NDArray[np.float64]:
    """Entropy over the last axis of counts, [..., states] -> [...]."""
    total = histogram.sum(axis=-1, keepdims=True)
    share = histogram / np.maximum(total, 1)
    logs = np.log2(share, out=np.zeros_like(share), where=share > 0)
    entropy: NDArray[np.float64] = -(share * logs).sum(axis=-1)
    return np.abs(entropy)  # no -0.0


def histograms(signal: Signal, states: int) -> NDArray[np.int64]:
    """int64 [C, states] of a signal [n, C] with values 0..states-1."""
    cells = signal.shape[1]
    index = np.arange(cells) * states + signal
    return np.bincount(index.ravel(), minlength=cells * states).reshape(cells, states)


def mutual_information(
    one: Signal, other: Signal, states_one: int, states_other: int
) -> NDArray[np.float64]:
    """Plug-in estimate per cell, float64 [C]; too high by about (s - 1)(t - 1) / (2 n ln 2)."""
    joint = histograms(one * states_other + other, states_one * states_other)
    table = joint.reshape(-1, states_one, states_other)
    information: NDArray[np.float64] = (
        entropy_bits(table.sum(axis=2)) + entropy_bits(table.sum(axis=1)) - entropy_bits(joint)
    )
    return information


def null_information(
    one: Signal, other: Signal, states_one: int, states_other: int, shuffles: int, seed: int
) -> NDArray[np.float64]:
    """Mean over `shuffles` random pairings of the passes: what the estimate gives where there is
    nothing to find. Subtract it from mutual_information to correct its bias."""
    generator = np.random.default_rng(seed)
    total = np.zeros(one.shape[1])
    for _ in range(shuffles):
        mixed = other[generator.permutation(len(other))]
        total += mutual_information(one, mixed, states_one, states_other)
    return total / shuffles
