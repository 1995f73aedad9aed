"""Draft lengths: acceptance estimates, the roofline governor, the measured one, no speculation."""

import numpy as np
import pytest

from policies.api import CPU, GPU, Shape
from policies.compile import python_kernel
from policies.composed import ComposedPolicy
from policies.conformance import plain_costs
from policies.ledger import new_ledger
from policies.observation import new_observation, observe_rows
from policies.parts import AllCpu, ExpectedGain, FixedWindow, NoEstimator, Roofline, Still
from policies.plan import new_plan
from policies.state import ACTIVE, EXPERT_NS, MISSES, ROW_NS
from policies.windows.acceptance import (
    acceptance_rate,
    expected_tokens,
    fade_acceptance,
    observe_acceptance,
)
from policies.windows.expected_gain import pass_ns
from policies.windows.pass_time import fixed_layer_ns, note_layer_time
from policies.windows.roofline import distinct_experts, pass_roofline_ns

acceptance_rate = python_kernel(acceptance_rate)
expected_tokens = python_kernel(expected_tokens)
fade_acceptance = python_kernel(fade_acceptance)
observe_acceptance = python_kernel(observe_acceptance)
fixed_layer_ns = python_kernel(fixed_layer_ns)
note_layer_time = python_kernel(note_layer_time)
observe_rows = python_kernel(observe_rows)
pass_ns = python_kernel(pass_ns)
distinct_experts = python_kernel(distinct_experts)
pass_roofline_ns = python_kernel(pass_roofline_ns)

SHAPE = Shape(4, 32, 4, 16, 1, 8, False)


def policy(window, costs=None):
    made = ComposedPolicy("x", NoEstimator(), AllCpu(), Still(), window=window)
    made.reset(SHAPE, costs or plain_costs())
    return made


def accepted_of(random, gamma, rate):
    refused = random.random(gamma) >= rate
    return int(np.argmax(refused)) if refused.any() else gamma


def test_fixed_windows():
    assert policy(FixedWindow()).start_pass(0) == 8
    assert policy(FixedWindow(3)).start_pass(0) == 3
    assert policy(FixedWindow(99)).start_pass(0) == 8
    assert policy(FixedWindow(0)).start_pass(0) == 0


@pytest.mark.parametrize("rate", [0.2, 0.6, 0.95])
def test_acceptance_is_estimated_by_position(rate):
    state = policy(Roofline()).state_
    random = np.random.default_rng(1)
    for _ in range(2_000):
        observe_acceptance(state, 8, accepted_of(random, 8, rate), 0.999)
    assert acceptance_rate(state, 1) == pytest.approx(rate, abs=0.06)
    exact = sum(rate**power for power in range(5))
    assert expected_tokens(state, 4, 0.0) == pytest.approx(exact, rel=0.08)
    assert expected_tokens(state, 0, 0.0) == 1.0


def test_positions_behind_a_refusal_are_not_tried():
    state = policy(Roofline()).state_
    observe_acceptance(state, 4, 1, 1.0)
    assert state.window[0, 1:5].tolist() == [1, 1, 0, 0]
    assert state.window[1, 1:5].tolist() == [1, 0, 0, 0]


def test_what_was_tried_long_ago_becomes_unsure():
    """Hope is above the estimate, most where little is known, and never above 1."""
    state = policy(ExpectedGain()).state_
    for _ in range(100):
        observe_acceptance(state, 1, 0, 1.0)
    sure = expected_tokens(state, 1, 1.0) - expected_tokens(state, 1, 0.0)
    assert 0 < sure < 0.06
    for _ in range(1000):
        fade_acceptance(state, 0.99)
    assert expected_tokens(state, 1, 0.0) == pytest.approx(1.8, abs=0.01), "the first guess again"
    unsure = expected_tokens(state, 1, 1.0) - expected_tokens(state, 1, 0.0)
    assert unsure > 2 * sure
    assert expected_tokens(state, 1, 1e9) == 2


def test_distinct_experts_of_independent_rows():
    """facts: 8 / 15.5 / 35.3 / 56.4 / 85.3 of 128 at 1 / 2 / 5 / 9 / 17 rows."""
    found = [round(distinct_experts(128, 8, rows), 1) for rows in (1, 2, 5, 9, 17)]
    assert found == [8.0, 15.5, 35.3, 56.4, 85.3]


def run(made, rate, passes=400, row_ns=None, seed=0):
    """Gamma of every pass; `row_ns(row)`: what each row of a pass adds to its experts' time."""
    random = np.random.default_rng(seed)
    chosen = []
    for number in range(passes):
        gamma = made.start_pass(number)
        if row_ns is not None:
            rows = [row_ns(row) for row in range(gamma + 1)]
            made.state_.window[ROW_NS, : gamma + 1] = rows
            made.state_.measured[EXPERT_NS] = sum(rows)
        made.end_pass(accepted_of(random, gamma, rate) if gamma else 0)
        chosen.append(gamma)
    return chosen


def test_the_roofline_drafts_further_when_more_is_accepted():
    """A short draft step: four layers are not the whole of a model."""
    chosen = {}
    for rate in (0.1, 0.5, 0.9):
        made = policy(Roofline(), plain_costs()._replace(draft_step_ns=50_000))
        made.state_.measured[ACTIVE], made.state_.measured[MISSES] = 12.0, 1.0
        chosen[rate] = run(made, rate)[-1]
    assert chosen[0.1] <= chosen[0.5] <= chosen[0.9]
    assert chosen[0.1] == 1 and chosen[0.9] >= 3, chosen


def test_more_misses_make_a_pass_longer():
    state = policy(Roofline()).state_
    state.measured[ACTIVE], state.measured[MISSES] = 12.0, 0.0
    without = pass_roofline_ns(state, plain_costs(), 4)
    state.measured[MISSES] = 6.0
    assert pass_roofline_ns(state, plain_costs(), 4) > without


def rows_of(first, more):
    return lambda row: more if row else first


CHEAP_DRAFT = plain_costs()._replace(draft_step_ns=100_000)


@pytest.mark.parametrize(
    ("rate", "first", "more", "best"),
    [
        (0.05, 10_000_000, 9_000_000, {0}),  # drafting loses: off
        (0.98, 50_000_000, 1_000_000, {7, 8}),  # drafting is nearly free
    ],
)
def test_the_window_finds_the_gain(rate, first, more, best):
    made = policy(ExpectedGain(explore=16), CHEAP_DRAFT)
    settled = run(made, rate, row_ns=rows_of(first, more))[200:]
    share = sum(gamma in best for gamma in settled) / len(settled)
    assert share > 0.85, (share, settled[-32:])


def test_the_window_is_near_the_best_fixed_one():
    for rate in (0.3, 0.6, 0.85):
        for more in (1_000_000, 4_000_000, 12_000_000):
            made = policy(ExpectedGain(), CHEAP_DRAFT)
            chosen = run(made, rate, passes=600, row_ns=rows_of(30_000_000, more))[200:]
            fixed = [CHEAP_DRAFT.pass_ns + 4 * fixed_layer_ns(CHEAP_DRAFT, g + 1) for g in range(9)]
            value = [
                sum(rate**power for power in range(gamma + 1))
                / (fixed[gamma] + gamma * 100_000 + 30_000_000 + gamma * more)
                for gamma in range(9)
            ]
            reached = np.mean([value[gamma] for gamma in chosen])
            assert reached > 0.95 * max(value), (rate, more, chosen[-20:], np.argmax(value))


def test_one_long_pass_tells_what_all_shorter_ones_take():
    made = policy(ExpectedGain(), CHEAP_DRAFT)
    added = [7_000_000, 4_000_000, 3_000_000, 2_000_000, 1_000_000, 0, 0, 500_000, 0]
    run(made, 0.5, passes=200, row_ns=added.__getitem__)
    made.state_.window[ROW_NS] = 0.0
    for gamma in (0, 1, 3, 8):
        fixed = CHEAP_DRAFT.pass_ns + gamma * 100_000
        fixed += 4 * fixed_layer_ns(CHEAP_DRAFT, gamma + 1)
        expected = fixed + sum(added[: gamma + 1])
        found = pass_ns(made.state_, CHEAP_DRAFT, gamma, 0.98)
        assert found == pytest.approx(expected, rel=0.12), gamma


def test_rows_add_what_the_rows_before_them_did_not_need():
    """CPU times of two missing experts, one of them already needed by row 0; expert 3 is ready."""
    made = policy(ExpectedGain())
    observation, plan = new_observation(32), new_plan(4, 32, 16)
    rows = np.array([[0, 3], [0, 5], [3, 3]], np.int32)
    observe_rows(observation, rows, np.zeros((0, 0)), np.zeros((0, 0, 0), np.int32))
    observation.ready[3] = 1
    plan.placement[[0, 5]] = CPU
    plan.placement[3] = GPU
    costs = plain_costs()
    note_layer_time(made.state_, costs, new_ledger(4, 32, 16, 1), observation, plan, rows)
    overhead = costs.dispatch_ns + costs.return_ns
    # Row 1 adds a second row of expert 0 and all of expert 5; row 2 only work on the idle GPU.
    second = costs.cpu_ns[2] - costs.cpu_ns[1] + costs.cpu_ns[1]
    assert made.state_.window[ROW_NS, :3].tolist() == [costs.cpu_ns[1] + overhead, second, 0]
    assert made.state_.measured[EXPERT_NS] == costs.cpu_ns[2] + costs.cpu_ns[1] + overhead


def test_windows_stay_in_range_and_are_reproducible():
    for window in (Roofline(), ExpectedGain()):
        first = run(policy(window), 0.7)
        assert first == run(policy(window), 0.7)
        assert min(first) >= 0 and max(first) <= 8
