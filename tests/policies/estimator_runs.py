"""An estimator by itself: passes shown to it, utilities taken from it."""

import numpy as np

from policies.api import Shape
from policies.compile import python_kernel
from policies.composed import ComposedPolicy
from policies.conformance import plain_costs
from policies.estimators.estimate import estimate
from policies.observation import new_observation, observe_rows
from policies.parts import ByResidency, Still

estimate = python_kernel(estimate)
observe_rows = python_kernel(observe_rows)

SHAPE = Shape(2, 4, 1, 6, 1, 3, False)


def policy(estimator, signal="count", quota="per_layer", shape=SHAPE):
    made = ComposedPolicy("x", estimator, ByResidency(), Still(), signal=signal, quota=quota)
    made.reset(shape, plain_costs())
    return made


def see(made, counts, layer=0, weights=None):
    rows = np.repeat(np.arange(len(counts)), counts).astype(np.int32)[:, None]
    observation = new_observation(len(counts))
    given = np.zeros((0, 0)) if weights is None else np.asarray(weights, float)[:, None]
    observe_rows(observation, rows, given, np.zeros((0, 0, 0), np.int32))
    estimate(made.program_, made.state_, observation, layer)
    return made.state_.utility[layer].tolist()


def show(made, counts, layer=0, weights=None):
    made.start_pass(0)
    return see(made, counts, layer, weights)
