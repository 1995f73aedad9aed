"""Past passes like the present one: how alike they are, which are nearest, what they foretell."""

import numpy as np
import pytest

from policies.api import Shape
from policies.bits import count_ones
from policies.compile import kernel, python_kernel
from policies.estimators import matches
from policies.estimators.reuse import MATCHES
from policies.observation import new_observation, observe_rows
from policies.parts import Reuse
from policies.state import ESTIMATOR, PASS, TOP_K, Sizes, new_state
from tests.policies.estimator_runs import policy, see, show

carry_likeness = python_kernel(matches.carry_likeness)
compare_layer = python_kernel(matches.compare_layer)
expect_matches = python_kernel(matches.expect_matches)
find_nearest = python_kernel(matches.find_nearest)
observe_rows = python_kernel(observe_rows)
DISCOUNT = 0.5


@kernel
def ones(word):
    return count_ones(word)


def remembering(layers=1, experts=4, passes=8, nearest=3):
    state = new_state(layers, experts, Sizes(features=1, passes=passes, nearest=nearest))
    state.clock[PASS] = -1
    state.clock[TOP_K] = 1
    state.parameters[ESTIMATOR, matches.DISCOUNT] = DISCOUNT
    return state


def run_pass(state, *layers):
    """One pass whose layers use these experts."""
    state.clock[PASS] += 1
    carry_likeness(state)
    for layer, experts in enumerate(layers):
        observation = new_observation(state.utility.shape[1])
        rows = np.array(experts, np.int32)[:, None]
        observe_rows(observation, rows, np.zeros((0, 0)), np.zeros((0, 0, 0), np.int32))
        compare_layer(state, observation, layer)


def expected(state, layer=0):
    filled = np.full(state.utility.shape[1], -1.0)
    expect_matches(state, layer, filled)
    return filled


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1, 0b1011])
def test_ones_of_a_word(word):
    assert ones(np.uint64(word)) == word.bit_count()


def test_likeness_is_the_share_of_common_experts_over_all_layers():
    state = remembering(layers=2)
    run_pass(state, [0, 1], [2])
    run_pass(state, [3], [3])
    run_pass(state, [0], [2])
    first = 0.5 * (2 * 1 / (1 + 2)) + 0.5 * 1.0
    assert state.likeness[:3].tolist() == pytest.approx([first, 0, 0])


def test_experts_beyond_the_first_word_count():
    state = remembering(experts=130)
    run_pass(state, [1, 129])
    run_pass(state, [65, 129])
    assert state.likeness[0] == pytest.approx(0.5), "1 and 65 are the same bit of two words"


def test_likeness_is_carried_to_what_came_next():
    state = remembering()
    for expert in (0, 1, 0):
        run_pass(state, [expert])
    assert state.likeness[:3].tolist() == [1.0, 0.0, 0.0]
    run_pass(state, [2])
    assert state.likeness[:3].tolist() == pytest.approx([0.0, matches.CARRY, 0.0])


def test_the_nearest_are_listed_likest_first_and_never_the_present_pass():
    state = remembering(nearest=3)
    for experts in ([0], [0, 1], [0, 1, 2], [3], [0, 1, 2]):
        run_pass(state, experts)
    assert find_nearest(state) == 3
    assert state.nearest.tolist() == [2, 1, 0]
    empty = remembering()
    run_pass(empty, [0])
    assert find_nearest(empty) == 0
    assert expected(empty).tolist() == [0, 0, 0, 0]


def test_what_came_after_the_match_is_expected_discounted():
    state = remembering(nearest=1)
    for expert in (0, 1, 2, 0):
        run_pass(state, [expert])
    assert expected(state).tolist() == pytest.approx([DISCOUNT**2, 1, DISCOUNT, 0])


def test_a_pass_of_many_experts_foretells_shares():
    state = remembering(nearest=1)
    for experts in ([0], [1, 2], [0]):
        run_pass(state, experts)
    assert expected(state).tolist() == pytest.approx([DISCOUNT, 0.5, 0.5, 0])


def test_what_went_before_tells_equal_passes_apart():
    """0 after 2 was followed by 1, 0 after 3 by 3."""
    state = remembering(nearest=2)
    for expert in (2, 0, 1, 3, 0, 3, 2, 0):
        run_pass(state, [expert])
    values = expected(state)
    # The 2 before both, against the 0 that lies three passes before the other one.
    odds = np.exp(matches.SHARPNESS * (matches.CARRY - matches.CARRY**3))
    assert values[1] == pytest.approx(odds / (1 + odds))


def test_passes_older_than_the_ring_are_forgotten():
    state = remembering(passes=4, nearest=4)
    for expert in (0, 1, 2, 2, 2, 0):
        run_pass(state, [expert])
    assert find_nearest(state) == 3
    assert expected(state)[1] == 0.0
    assert np.isfinite(expected(state)).all()


def test_a_text_that_comes_again_is_foreseen():
    """Forty uses of eight experts in one random order, time and again."""
    made = policy(Reuse(token_weight=0.0, discount=0.5), shape=Shape(1, 8, 1, 6, 1, 3, False))
    order = np.random.default_rng(1).integers(0, 8, 40)
    for expert in np.tile(order, 6):
        show(made, np.eye(8, dtype=int)[expert])
    hits = 0
    for place, expert in enumerate(order):
        utilities = show(made, np.eye(8, dtype=int)[expert])
        hits += int(np.argmax(utilities)) == order[(place + 1) % 40]
    assert hits >= 36


def test_another_request_begins_without_a_likeness():
    made = policy(Reuse())
    for _ in range(3):
        show(made, [1, 0, 0, 0])
    assert made.state_.likeness.max() > 0.0
    made.start_request(np.zeros(0, np.int32))
    assert made.state_.likeness.max() == 0.0
    made.start_pass(0)
    see(made, [1, 0, 0, 0])
    assert made.state_.features[0, 0, MATCHES] > 0.0, "earlier requests are remembered"
