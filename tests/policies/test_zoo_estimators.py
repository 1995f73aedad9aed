"""What the estimators of the literature systems learn, step by step."""

import numpy as np
import pytest

from policies.api import Shape
from policies.compile import python_kernel
from policies.composed import ComposedPolicy
from policies.conformance import plain_costs
from policies.estimators.estimate import estimate
from policies.estimators.token_mix import learn_tokens
from policies.observation import new_observation, observe_rows
from policies.parts import (
    Average,
    ByResidency,
    Fixed,
    FrequencyRecency,
    Last,
    RequestMatrix,
    Still,
    TokenMix,
    Workload,
)

estimate = python_kernel(estimate)
learn_tokens = python_kernel(learn_tokens)
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


def test_lfru_orders_by_uses_over_age():
    made = policy(FrequencyRecency())
    assert show(made, [4, 0, 1, 0]) == [4, 0, 1, 0]
    assert show(made, [0, 0, 1, 0]) == [2, 0, 2, 0]  # 4 uses one pass ago, 2 uses now
    assert show(made, [0, 1, 0, 0]) == pytest.approx([4 / 3, 1, 1, 0])
    assert show(made, [1, 0, 0, 0]) == pytest.approx([5, 1 / 2, 2 / 3, 0])


def test_average_keeps_the_top_signals_only():
    """top_k 1, per_top_k 2: the two largest count; equal ones: the lower number."""
    made = policy(Average(weight=0.5, per_top_k=2))
    assert show(made, [3, 1, 2, 1]) == [1.5, 0, 1, 0]
    assert show(made, [0, 1, 1, 1]) == [0.75, 0.5, 1, 0]
    assert show(policy(Average(0.5, 0)), [3, 1, 2, 1]) == [1.5, 0.5, 1, 0.5]


def test_average_of_router_mass():
    made = policy(Average(weight=0.5), signal="mass")
    assert show(made, [2, 0, 1, 0], weights=[0.5, 0.25, 0.5]) == [0.375, 0, 0.25, 0]


def test_workload_changes_where_a_window_ends():
    made = policy(Workload(passes=2))
    assert show(made, [3, 0, 0, 0]) == [0, 0, 0, 0]
    assert show(made, [1, 1, 0, 0]) == [4, 1, 0, 0]
    assert show(made, [0, 0, 9, 0]) == [4, 1, 0, 0]
    assert show(made, [0, 0, 0, 1]) == [0, 0, 9, 1]


def test_fixed_takes_the_first_experts_of_each_quota():
    made = policy(Fixed())
    assert made.state_.utility.tolist() == [[1, 1, 1, 0], [1, 1, 1, 0]]
    whole = policy(Fixed(), quota="whole_layers")
    assert whole.state_.utility.tolist() == [[0, 0, 0, 0], [1, 1, 1, 1]]
    assert show(made, [0, 0, 0, 9]) == [1, 1, 1, 0]


def request(made, passes):
    made.start_request(np.zeros(0, np.int32))
    for counts in passes:
        made.start_pass(0)
        for layer in range(2):
            see(made, counts[layer], layer)


def test_requests_are_matched_to_past_ones():
    made = policy(RequestMatrix(capacity=4))
    request(made, [([4, 0, 0, 0], [0, 2, 2, 0])])
    request(made, [([0, 0, 4, 0], [0, 0, 0, 8])])
    request(made, [([0, 0, 1, 0], [0, 0, 0, 1])])  # looks like the second
    made.start_pass(0)
    assert made.state_.utility.tolist() == [[0, 0, 1, 0], [0, 0, 0, 0.5]]  # layer 1 weighs half
    assert made.state_.library[:2, 0].tolist() == [[4, 0, 0, 0], [0, 0, 4, 0]]


def test_a_new_request_begins_with_the_mean_of_past_ones():
    made = policy(RequestMatrix(capacity=4))
    request(made, [([4, 0, 0, 0], [4, 0, 0, 0])])
    request(made, [([0, 0, 4, 0], [4, 0, 0, 0])])
    made.start_request(np.zeros(0, np.int32))
    made.start_pass(0)
    assert made.state_.utility.tolist() == [[0.5, 0, 0.5, 0], [0.5, 0, 0, 0]]


def test_the_library_forgets_the_oldest():
    made = policy(RequestMatrix(capacity=2))
    for expert in range(3):
        counts = [0, 0, 0, 0]
        counts[expert] = 2
        request(made, [(counts, counts)])
    made.start_request(np.zeros(0, np.int32))
    assert made.state_.library[:, 0].tolist() == [[0, 0, 2, 0], [0, 2, 0, 0]]


def token_policy(**changes):
    given = {"decay": 0.5, "token_weight": 1.0, "learning": 0.5, "buckets": 8, "patience": 0.0}
    return policy(TokenMix(**(given | changes)))


def learn(made, tokens, experts, layer=0):
    """One pass: `tokens` known while drafting, row j of the routing goes to experts[j]."""
    made.start_pass(tokens[0])
    for token in tokens[1:]:
        made.note_token(token)
    before = made.state_.utility[layer].copy()
    rows = np.array(experts, np.int32)[:, None]
    see(made, np.bincount(experts, minlength=4), layer)
    learn_tokens(made.state_, rows, layer)
    return before


def test_a_known_token_counts_by_what_it_activated_before():
    made = token_policy()
    assert learn(made, [5, 6], [1, 2]).tolist() == [0, 0, 0, 0]
    # The rates are 1/2 each over two rows; four rows are expected in the next pass.
    assert made.state_.utility[0].tolist() == [0, 2, 2, 0]
    # Token 5 is known: its row counts as expert 1, three rows remain with the rates.
    made.start_pass(5)
    assert made.state_.utility[0].tolist() == [0, 2.5, 1.5, 0]
    made.note_token(7)
    assert made.state_.utility[0].tolist() == [0, 2.5, 1.5, 0], "never seen: the rate stands"
    made.note_token(6)
    assert made.state_.utility[0].tolist() == [0, 2, 2, 0]


def test_shares_follow_a_token_that_changes_its_experts():
    made = token_policy()
    learn(made, [5], [1])
    learn(made, [5], [3])
    remembered = made.state_.token_expert[5, 0].tolist()
    assert made.state_.token_share[5, 0, remembered.index(1)] == 0.5
    assert made.state_.token_share[5, 0, remembered.index(3)] == 0.5
    learn(made, [5], [0])  # two ways: the smallest share makes room
    assert 0 in made.state_.token_expert[5, 0].tolist()


def test_patience_adds_passes_at_the_rate():
    made = token_policy(patience=1.0)
    learn(made, [-1, -1], [1, 2])
    assert made.state_.utility[0].tolist() == [0, 4, 4, 0]


def test_token_mix_declares_its_need():
    assert policy(TokenMix()).needs == {"draft_tokens"}
    assert policy(TokenMix(token_weight=0.0)).needs == frozenset()
    assert policy(Last()).needs == frozenset()
