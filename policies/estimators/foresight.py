"""Clairvoyant utilities, for bounds only: the next pass of use (Belady), or the counts of the
coming pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from policies.compile import inner, kernel
from policies.state import ESTIMATOR, PASS

DISCOUNT = 0
HORIZON = 64  # passes looked ahead; what is later hardly counts


def next_use_table(counts: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    """counts [passes, layers, experts] -> for each pass the first later pass that activates the
    expert (passes if none)."""
    passes = counts.shape[0]
    table = np.empty(counts.shape, np.int32)
    following = np.full(counts.shape[1:], passes, np.int32)
    for index in range(passes - 1, -1, -1):
        table[index] = following
        following = np.where(counts[index] > 0, np.int32(index), following)
    return table


@inner
def observe_next_use(state, layer):
    """utility = -(time of the next use, in layers run): the farthest is the first victim."""
    utilities, next_use = state.utility, state.next_use
    now = min(state.clock[PASS], next_use.shape[0] - 1)
    layers, experts = utilities.shape
    for expert in range(experts):
        utilities[layer, expert] = -float(next_use[now, layer, expert] * layers + layer)


@inner
def observe_upcoming(state, layer):
    """utility = activation count of this layer in the coming pass; once it is past, the layer's
    next one."""
    utilities, counts = state.utility, state.counts_to_come
    coming = state.clock[PASS] + 1
    for expert in range(utilities.shape[1]):
        if coming < counts.shape[0]:
            utilities[layer, expert] = float(counts[coming, layer, expert])
        else:
            utilities[layer, expert] = 0.0


@kernel(allocates=False)
def sum_uses_to_come(state, layer, coming):
    """utility = discounted number of the passes from `coming` on that use the expert."""
    utilities, counts = state.utility, state.counts_to_come
    discount = state.parameters[ESTIMATOR, DISCOUNT]
    last = min(counts.shape[0], coming + HORIZON)
    utilities[layer] = 0.0
    for index in range(last - 1, coming - 1, -1):
        for expert in range(utilities.shape[1]):
            used = 1.0 if counts[index, layer, expert] > 0 else 0.0
            utilities[layer, expert] = used + discount * utilities[layer, expert]


@inner
def observe_uses_to_come(state, layer):
    """The true value of what policies.estimators.reuse learns, from the next pass on."""
    sum_uses_to_come(state, layer, state.clock[PASS] + 1)
