"""What the estimators of the literature systems learn, step by step."""

import numpy as np
import pytest

from policies.api import Future
from policies.parts import (
    Average,
    Fixed,
    FrequencyRecency,
    RequestMatrix,
    UsesToCome,
    Workload,
)
from tests.policies.estimator_runs import policy, see, show


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


def test_the_true_value_is_the_discounted_sum():
    made = policy(UsesToCome(0.5))
    counts = np.zeros((4, 2, 4), np.uint8)
    counts[:, 0, 1] = [3, 0, 1, 1]
    made.foresee(Future(counts))
    assert made.state_.utility[0].tolist() == [0, 1 + 0.25 + 0.125, 0, 0]
    assert show(made, [0, 3, 0, 0]) == [0, 0.5 + 0.25, 0, 0]
    assert made.clairvoyant
