"""Draft lengths: acceptance estimates, the roofline governor, the measured one, no speculation."""

import numpy as np
import pytest

from policies.api import Shape
from policies.compile import python_kernel
from policies.composed import ComposedPolicy
from policies.conformance import plain_costs
from policies.parts import AllCpu, ExpectedGain, FixedWindow, NoEstimator, Roofline, Still
from policies.state import ACCUMULATED_NS, ACTIVE, MISSES
from policies.windows.acceptance import acceptance_rate, expected_tokens, observe_acceptance
from policies.windows.expected_gain import fit_pass_time
from policies.windows.roofline import distinct_experts, pass_roofline_ns

acceptance_rate = python_kernel(acceptance_rate)
expected_tokens = python_kernel(expected_tokens)
observe_acceptance = python_kernel(observe_acceptance)
fit_pass_time = python_kernel(fit_pass_time)
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
    assert expected_tokens(state, 4) == pytest.approx(exact, rel=0.08)
    assert expected_tokens(state, 0) == 1.0


def test_positions_behind_a_refusal_are_not_tried():
    state = policy(Roofline()).state_
    observe_acceptance(state, 4, 1, 1.0)
    assert state.window[0, 1:5].tolist() == [1, 1, 0, 0]
    assert state.window[1, 1:5].tolist() == [1, 0, 0, 0]


def test_distinct_experts_of_independent_rows():
    """facts: 8 / 15.5 / 35.3 / 56.4 / 85.3 of 128 at 1 / 2 / 5 / 9 / 17 rows."""
    found = [round(distinct_experts(128, 8, rows), 1) for rows in (1, 2, 5, 9, 17)]
    assert found == [8.0, 15.5, 35.3, 56.4, 85.3]


def run(made, rate, passes=400, pass_ns=None, seed=0):
    """Gamma of every pass; `pass_ns(gamma)` replaces the policy's own estimate of a pass."""
    random = np.random.default_rng(seed)
    chosen = []
    for number in range(passes):
        gamma = made.start_pass(number)
        if pass_ns is not None:
            made.state_.clock[ACCUMULATED_NS] = pass_ns(gamma)
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


def linear(start, slope):
    return lambda gamma: start + slope * gamma


@pytest.mark.parametrize(
    ("rate", "start", "slope", "best"),
    [
        (0.05, 10_000_000, 9_000_000, {0}),  # drafting loses: off
        (0.98, 50_000_000, 1_000_000, {7, 8}),  # drafting is nearly free
    ],
)
def test_the_measured_window_finds_the_gain(rate, start, slope, best):
    chosen = run(policy(ExpectedGain(explore=16)), rate, pass_ns=linear(start, slope))
    settled = chosen[200:]
    share = sum(gamma in best for gamma in settled) / len(settled)
    assert share > 0.85, (share, settled[-32:])


def test_the_measured_window_is_near_the_best_fixed_one():
    for rate in (0.3, 0.6, 0.85):
        for slope in (1_000_000, 4_000_000, 12_000_000):
            times = linear(30_000_000, slope)
            value = [
                sum(rate**power for power in range(gamma + 1)) / times(gamma) for gamma in range(9)
            ]
            chosen = run(policy(ExpectedGain()), rate, passes=600, pass_ns=times)[200:]
            reached = np.mean([value[gamma] for gamma in chosen])
            assert reached > 0.93 * max(value), (rate, slope, chosen[-20:], np.argmax(value))


def test_the_fit_is_exact_for_a_line():
    made = policy(ExpectedGain())
    for gamma in (1, 4, 8):
        made.state_.window[2, gamma] = 1.0
        made.state_.window[3, gamma] = 100 + 7 * gamma
    assert fit_pass_time(made.state_, 8) == pytest.approx((100, 7))


def test_windows_stay_in_range_and_are_reproducible():
    for window in (Roofline(), ExpectedGain()):
        first = run(policy(window), 0.7)
        assert first == run(policy(window), 0.7)
        assert min(first) >= 0 and max(first) <= 8
