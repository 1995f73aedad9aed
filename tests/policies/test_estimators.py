"""What each estimator learns from activation counts, step by step."""

import numpy as np
import pytest

from policies.api import Future, Shape
from policies.compile import python_kernel
from policies.composed import ComposedPolicy
from policies.conformance import plain_costs
from policies.estimators.estimate import estimate
from policies.observation import new_observation, observe_rows
from policies.parts import (
    ByResidency,
    Decayed,
    Inertia,
    Last,
    NextUse,
    Recency,
    StaticProfile,
    Still,
    Upcoming,
)
from policies.state import DOWN, UP, WANTED

estimate = python_kernel(estimate)
observe_rows = python_kernel(observe_rows)

SHAPE = Shape(2, 4, 2, 4, 1, 8, False)


def policy(estimator, signal="count"):
    made = ComposedPolicy("test", estimator, ByResidency(), Still(), signal=signal)
    made.reset(SHAPE, plain_costs())
    return made


def show(made, counts, layer=0, weights=None):
    """One pass in which expert e is chosen counts[e] times, one expert a row."""
    made.start_pass(0)
    rows = np.repeat(np.arange(len(counts)), counts).astype(np.int32)[:, None]
    observation = new_observation(4)
    given = np.zeros((0, 0)) if weights is None else np.asarray(weights, float)[:, None]
    assert observe_rows(observation, rows, given, np.zeros((0, 0, 0), np.int32)) == -1
    estimate(made.program_, made.state_, observation, layer)
    return made.state_.utility[layer].tolist()


def test_inertia_moves_one_level_and_only_on_large_changes():
    made = policy(Inertia(levels=5, up=5, down=1, calibrate=False))
    assert show(made, [5, 4, 0, 9]) == [1, 0, 0, 1]  # 0 -> 1 needs 5 activations
    assert show(made, [5, 5, 5, 9]) == [
        1,
        1,
        1,
        2,
    ]  # a level stays while level <= count < level + up
    assert show(made, [6, 1, 0, 1]) == [2, 1, 0, 1]  # one down as soon as the count is below
    for _ in range(9):
        levels = show(made, [9, 0, 0, 9])
    assert levels == [5, 0, 0, 5]  # 4 -> 5 needs 9, the top is K
    assert show(made, [4, 0, 0, 5]) == [4, 0, 0, 5]


def test_calibration_raises_up_when_the_link_is_overbooked_and_lowers_it_when_idle():
    made = policy(Inertia(levels=5, up=2, down=1, calibrate=True, period=1))
    show(made, [0, 0, 0, 0])
    made.state_.clock[WANTED] = 10_000  # copies wanted: far more than a pass can carry
    show(made, [0, 0, 0, 0])
    assert made.state_.clock[UP] == 3
    for _ in range(5):
        show(made, [0, 0, 0, 0])
    assert made.state_.clock[UP] == 1
    assert made.state_.clock[DOWN] == 1


def test_recency_decay_last_and_static():
    assert show(policy(Recency()), [1, 0, 2, 0]) == [0, 0, 0, 0]
    made = policy(Recency())
    show(made, [1, 0, 0, 0])
    assert show(made, [0, 3, 0, 0]) == [0, 1, 0, 0]
    made = policy(Decayed(0.5))
    show(made, [4, 0, 0, 2])
    assert show(made, [1, 0, 0, 0]) == [3.0, 0, 0, 1.0]
    made = policy(Last())
    show(made, [4, 0, 0, 2])
    assert show(made, [0, 0, 3, 0]) == [0, 0, 3, 0]
    made = policy(StaticProfile(2))
    show(made, [1, 0, 0, 0])
    show(made, [1, 2, 0, 0])
    assert show(made, [0, 0, 9, 9]) == [2, 2, 0, 0]


@pytest.mark.parametrize(
    ("signal", "expected"),
    [("count", [2, 0, 1, 0]), ("bit", [1, 0, 1, 0]), ("mass", [0.75, 0, 0.5, 0])],
)
def test_signals(signal, expected):
    assert show(policy(Last(), signal), [2, 0, 1, 0], weights=[0.5, 0.25, 0.5]) == expected


def test_clairvoyants_know_the_passes_to_come():
    counts = np.zeros((3, 2, 4), np.uint8)
    counts[0, 0, 0] = counts[1, 0, 1] = counts[2, 0, 0] = 3
    made = policy(Upcoming())
    made.foresee(Future(counts))
    assert made.state_.utility[0].tolist() == [3, 0, 0, 0]
    assert show(made, [3, 0, 0, 0]) == [0, 3, 0, 0]
    assert show(made, [0, 3, 0, 0]) == [3, 0, 0, 0]
    assert show(made, [3, 0, 0, 0]) == [0, 0, 0, 0]
    made = policy(NextUse())
    made.foresee(Future(counts))
    assert made.state_.utility[0].tolist() == [0, -2, -6, -6]  # pass x 2 layers
    assert show(made, [3, 0, 0, 0]) == [-4, -2, -6, -6]
    assert show(made, [0, 3, 0, 0]) == [-4, -6, -6, -6]
