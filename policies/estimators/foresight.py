"""Clairvoyant utilities, for bounds only: the next pass of use (Belady), or the counts of the
coming pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from policies.compile import kernel
from policies.state import PASS


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


@kernel
def observe_next_use(state, layer):
    """utility = -(time of the next use, in layers run): the farthest is the first victim."""
    now = min(state.clock[PASS], state.next_use.shape[0] - 1)
    layers, experts = state.utility.shape
    for expert in range(experts):
        state.utility[layer, expert] = -float(state.next_use[now, layer, expert] * layers + layer)


@kernel
def observe_upcoming(state, layer):
    """utility = activation count of this layer in the coming pass; once it is past, the layer's
    next one."""
    coming = state.clock[PASS] + 1
    for expert in range(state.utility.shape[1]):
        if coming < state.counts_to_come.shape[0]:
            state.utility[layer, expert] = float(state.counts_to_come[coming, layer, expert])
        else:
            state.utility[layer, expert] = 0.0
