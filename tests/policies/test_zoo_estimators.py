"""What the estimators of the literature systems learn, step by step."""

import numpy as np
import pytest

from policies.api import Future, Shape
from policies.compile import python_kernel
from policies.composed import ComposedPolicy
from policies.conformance import plain_costs
from policies.errors import UserError
from policies.estimators.estimate import estimate
from policies.estimators.reuse import cell_of
from policies.estimators.token_shares import learn_tokens
from policies.observation import new_observation, observe_rows
from policies.parts import (
    Average,
    ByResidency,
    Fixed,
    FrequencyRecency,
    Last,
    RequestMatrix,
    Reuse,
    Still,
    UsesToCome,
    Workload,
)

cell_of = python_kernel(cell_of)
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


def reuse_policy(**changes):
    given = {"decay": 0.5, "token_weight": 1.0, "learning": 0.5, "buckets": 8, "discount": 0.5}
    return policy(Reuse(**(given | changes)))


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


def test_an_expert_of_every_pass_is_worth_all_the_discounted_future():
    made = reuse_policy(discount=0.8)
    for _ in range(400):
        utilities = show(made, [1, 0, 0, 0])
    assert utilities[0] == pytest.approx(1 / (1 - 0.8), rel=0.05)
    assert max(utilities[1:]) < 0.1


def test_values_follow_the_trace_and_not_recency():
    """Used in every second pass: what was just used is not needed next."""
    made = reuse_policy(discount=0.5)
    for number in range(600):
        utilities = show(made, [1, 0, 0, 0] if number % 2 else [0, 1, 0, 0])
    # v(just used) = d v(due), v(due) = 1 + d v(just used)
    assert utilities[0] == pytest.approx(0.5 / (1 - 0.25), rel=0.1)
    assert utilities[1] == pytest.approx(1 / (1 - 0.25), rel=0.1)


@pytest.mark.parametrize(
    ("age", "count", "row"),
    [(0, 1, 0), (0, 2, 1), (0, 7, 2), (1, 7, 3), (3, 1, 5), (5, 1, 6), (17, 1, 8), (99, 1, 9),
     (-1, 0, 9)],
)  # fmt: skip
def test_rows_of_the_table(age, count, row):
    assert cell_of(age, count, 0.0) == (row, 0)
    assert cell_of(age, count, 1.0)[1] == 9


def test_a_known_token_counts_by_what_it_activated_before():
    made = reuse_policy()
    learn(made, [5, 6], [1, 2])
    rest = np.array(made.state_.utility[0])
    assert made.state_.memory[0].tolist() == [0, 0.5, 0.5, 0]
    made.start_pass(5)
    # Its share of expert 1 (all of its past rows) replaces the rate of one row.
    assert made.state_.utility[0] - rest == pytest.approx([0, 0.5, -0.5, 0])
    made.note_token(7)
    assert made.state_.utility[0] - rest == pytest.approx([0, 0.5, -0.5, 0]), "never seen"
    made.note_token(6)
    assert np.allclose(made.state_.utility[0], rest)


def test_shares_follow_a_token_that_changes_its_experts():
    made = reuse_policy()
    learn(made, [5], [1])
    learn(made, [5], [3])
    remembered = made.state_.token_expert[5, 0].tolist()
    assert made.state_.token_share[5, 0, remembered.index(1)] == 0.5
    assert made.state_.token_share[5, 0, remembered.index(3)] == 0.5
    learn(made, [5], [0])  # two ways: the smallest share makes room
    assert 0 in made.state_.token_expert[5, 0].tolist()


def test_tokens_are_a_wish_that_can_be_withheld():
    made = policy(Reuse())
    assert made.needs == made.wishes == {"draft_tokens"}
    made.do_without(frozenset({"draft_tokens"}))
    assert made.needs == frozenset()
    assert policy(Reuse(token_weight=0.0)).needs == frozenset()
    assert policy(Last()).wishes == frozenset()
    with pytest.raises(UserError, match="cannot do without \\['router_mass'\\]"):
        policy(Last(), signal="mass").do_without(frozenset({"router_mass"}))


def test_the_true_value_is_the_discounted_sum():
    made = policy(UsesToCome(0.5))
    counts = np.zeros((4, 2, 4), np.uint8)
    counts[:, 0, 1] = [3, 0, 1, 1]
    made.foresee(Future(counts))
    assert made.state_.utility[0].tolist() == [0, 1 + 0.25 + 0.125, 0, 0]
    assert show(made, [0, 3, 0, 0]) == [0, 0.5 + 0.25, 0, 0]
    assert made.clairvoyant
