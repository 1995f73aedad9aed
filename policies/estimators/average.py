"""HybriMoE's cache score (arXiv 2504.05897): S <- a * TopP(s) + (1 - a) * S, with the signal s of
this pass (there: router mass) and the P largest of it kept."""

from __future__ import annotations

import numpy as np

from policies.compile import inner
from policies.signals.signal import signal_value
from policies.state import ESTIMATOR, TOP_K

WEIGHT = 0
PER_TOP_K = 1


@inner(allocates=True)
def observe_average(program, state, observation, layer):
    """One step for every expert of the layer; equal signals at the edge of TopP: lowest number
    first."""
    weight = state.parameters[ESTIMATOR, WEIGHT]
    keep = int(state.parameters[ESTIMATOR, PER_TOP_K]) * state.clock[TOP_K]
    utilities = state.utility
    experts = utilities.shape[1]
    signals = np.zeros(experts)
    for expert in range(experts):
        signals[expert] = signal_value(program.signal, observation, expert)
        utilities[layer, expert] *= 1.0 - weight
    length = observation.size[0]
    if keep == 0 or keep > length:
        keep = length
    for _ in range(keep):
        best = 0
        for expert in range(1, experts):
            if signals[expert] > signals[best]:
                best = expert
        utilities[layer, best] += weight * max(signals[best], 0.0)
        signals[best] = -1.0
