"""Slots per layer: sums, shapes, and AdapMoE's dynamic program against brute force."""

import itertools

import numpy as np
import pytest

from policies.api import Shape
from policies.compile import python_kernel
from policies.composed import ComposedPolicy
from policies.conformance import plain_costs
from policies.errors import UserError
from policies.estimators.estimate import estimate
from policies.ledger import READY, begin_fill, new_ledger
from policies.movers.victims import find_victim
from policies.observation import new_observation, observe_rows
from policies.parts import FetchMisses, MissCurves, Recency, Still
from policies.plan import new_plan
from policies.quotas.even import even_quota
from policies.quotas.miss_curves import best_division
from policies.quotas.shallow import shallow_quota
from policies.quotas.whole_layers import whole_layers_quota

estimate = python_kernel(estimate)
begin_fill = python_kernel(begin_fill)
find_victim = python_kernel(find_victim)
observe_rows = python_kernel(observe_rows)
best_division = python_kernel(best_division)


def hits_of(curve, share):
    return sum(int(curve[layer, :given].sum()) for layer, given in enumerate(share))


def test_the_division_has_the_fewest_misses_of_all():
    random = np.random.default_rng(0)
    for _ in range(200):
        layers, experts = int(random.integers(1, 4)), int(random.integers(1, 5))
        curve = random.integers(0, 9, (layers, experts + 1)).astype(np.int64)
        slots = int(random.integers(0, layers * experts + 3))
        share = best_division(curve, slots)
        best = max(
            hits_of(curve, given)
            for given in itertools.product(range(experts + 1), repeat=layers)
            if sum(given) <= slots
        )
        assert hits_of(curve, share) == best
        assert share.sum() == min(slots, layers * experts)
        assert share.min() >= 0 and share.max() <= experts


def test_a_curve_that_is_not_concave_is_solved_too():
    """Layer 0 gains nothing from one or two slots and 10 hits from the third: a greedy division by
    single slots would never give it any."""
    curve = np.array([[0, 0, 10, 0, 0], [2, 2, 2, 2, 0]], np.int64)
    assert best_division(curve, 3).tolist() == [3, 0]
    assert best_division(curve, 4).tolist() == [3, 1]


@pytest.mark.parametrize("bias", [0.0, 0.5, 1.0])
def test_shallow_quotas_fall_with_the_layer_and_use_all_slots(bias):
    for layers, experts, slots in [(4, 8, 17), (48, 128, 1024), (1, 8, 3), (3, 2, 6), (3, 2, 9)]:
        share = shallow_quota(layers, experts, slots, bias)
        assert share.sum() == min(slots, layers * experts)
        assert share.max() <= experts
        assert (np.diff(share) <= 1).all()
        if bias > 0 and slots < layers * experts // 2 and layers > 1:
            assert share[0] > share[-1]


def test_whole_layers_from_the_end():
    assert whole_layers_quota(4, 8, 20).tolist() == [0, 0, 8, 8]
    assert whole_layers_quota(4, 8, 7).tolist() == [0, 0, 0, 0]
    assert whole_layers_quota(2, 8, 99).tolist() == [8, 8]


def test_even_gives_the_remainder_to_the_first_layers():
    assert even_quota(3, 7).tolist() == [3, 2, 2]


def test_an_unknown_quota_is_refused_with_a_list():
    with pytest.raises(UserError, match=r"unknown quota 'half'.*miss_curves"):
        ComposedPolicy("x", Recency(), FetchMisses(), Still(), quota="half")


def observe(policy, layer, experts):
    observation = new_observation(policy.shape_.experts)
    rows = np.array(experts, np.int32)[:, None]
    observe_rows(observation, rows, np.zeros((0, 0)), np.zeros((0, 0, 0), np.int32))
    estimate(policy.program_, policy.state_, observation, layer)


def test_depths_and_the_division_after_the_profile():
    """Layer 0 repeats one expert (depth 0), layer 1 goes round three (depth 2)."""
    policy = ComposedPolicy("x", Recency(), FetchMisses(), Still(), quota=MissCurves(6))
    policy.reset(Shape(2, 4, 1, 4, 1, 1, False), plain_costs())
    for number in range(6):
        policy.start_pass(0)
        assert policy.state_.quota.tolist() == [2, 2]
        observe(policy, 0, [3])
        observe(policy, 1, [number % 3])
    assert policy.state_.curve.tolist() == [[5, 0, 0, 0, 1], [0, 0, 3, 0, 3]]
    policy.start_pass(0)
    assert policy.state_.quota.tolist() == [1, 3]
    observe(policy, 0, [2])
    assert policy.state_.curve.sum() == 12, "the profile is over"


def test_slots_move_to_a_layer_whose_quota_has_grown():
    policy = ComposedPolicy("x", Recency(), FetchMisses(), Still())
    policy.reset(Shape(2, 4, 1, 4, 1, 1, False), plain_costs())
    ledger, plan = new_ledger(2, 4, 4, 1), new_plan(2, 4, 4)
    for slot, key in enumerate([0, 1, 4, 5]):
        begin_fill(ledger, key, slot)
        ledger.slot_state[slot] = READY
    policy.state_.stamp[:] = [[5, 3, -1, -1], [1, 2, -1, -1]]
    assert find_victim(ledger, policy.state_, plan, 1, -1.0, False) == -1
    policy.state_.quota[:] = [1, 3]
    assert find_victim(ledger, policy.state_, plan, 1, -1.0, False) == 1  # layer 0's oldest
    plan.taken[1] = 1
    assert find_victim(ledger, policy.state_, plan, 1, -1.0, False) == -1, "one slot of surplus"
