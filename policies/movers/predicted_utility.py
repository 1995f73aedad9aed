"""Predictions as utilities: the routers of the next layers, applied to this layer's router input,
say which experts those layers will need in this very pass."""

from __future__ import annotations

from policies.compile import inner
from policies.state import ESTIMATOR, GAMMA, MOVER

HORIZON = 1
PATIENCE = 4  # of the estimator TokenMix


@inner
def expect_predictions(state, observation, layer):
    """Utilities of the next HORIZON layers: predicted counts for this pass, and for later ones the
    rates (`memory`)."""
    utilities, rates, predictions = state.utility, state.memory, observation.predicted
    layers, experts = utilities.shape
    later = state.parameters[ESTIMATOR, PATIENCE] * (1.0 + state.clock[GAMMA])
    for step in range(int(state.parameters[MOVER, HORIZON])):
        ahead = layer + 1 + step
        if ahead >= layers:
            return
        state.utility_version[ahead] += 1
        for expert in range(experts):
            utilities[ahead, expert] = predictions[step, expert] + later * rates[ahead, expert]
