"""Predictions as utilities: the routers of the next layers, applied to this layer's router input,
say which experts those layers will need in this very pass."""

from __future__ import annotations

from policies.compile import inner
from policies.estimators.reuse import DISCOUNT, value_now
from policies.state import ESTIMATOR, MOVER

HORIZON = 1


@inner
def expect_predictions(state, observation, layer):
    """Utilities of the next HORIZON layers: the predicted use in this pass, and the discounted
    value of later ones (estimator Reuse)."""
    utilities, predictions = state.utility, observation.predicted
    layers, experts = utilities.shape
    discount = state.parameters[ESTIMATOR, DISCOUNT]
    for step in range(int(state.parameters[MOVER, HORIZON])):
        ahead = layer + 1 + step
        if ahead >= layers:
            return
        state.utility_version[ahead] += 1
        for expert in range(experts):
            used = 1.0 if predictions[step, expert] > 0 else 0.0
            utilities[ahead, expert] = used + discount * value_now(state, ahead, expert)
