"""Agreement of predicted and measured runs: order, gaps, and the figures of one policy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runlog_samples import add_layer, add_pass, run_info
from scipy.stats import kendalltau

from traces.agreement import agreement, kendall_tau, smallest_gap
from traces.runlog import RunLog, RunLogBuilder

NUMBERS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=12)


def run_of(nanoseconds: int) -> RunLog:
    builder = RunLogBuilder(run_info())
    add_pass(builder, 0, 0, nanoseconds)
    add_layer(builder, 0, 0, 0)
    return builder.build()


@given(NUMBERS)
def test_tau_is_scipys(pairs: list[tuple[int, int]]) -> None:
    one, other = zip(*pairs, strict=True)
    mine, theirs = kendall_tau(one, other), kendalltau(one, other).statistic
    assert mine == pytest.approx(theirs, nan_ok=True)


def test_the_smallest_gap_stops_at_the_first_wrong_pair() -> None:
    measured = [100.0, 102.0, 110.0, 150.0]
    assert smallest_gap([1.0, 2.0, 3.0, 4.0], measured) == pytest.approx(0.02)
    # The nearest two are exchanged: all wider gaps are right, the next is 110 against 102.
    assert smallest_gap([2.0, 1.0, 3.0, 4.0], measured) == pytest.approx(8 / 102)
    assert smallest_gap([4.0, 3.0, 2.0, 1.0], measured) is None
    assert smallest_gap([1.0, 1.0], [1.0, 2.0]) is None  # a tie is no right order


def test_figures_of_one_policy() -> None:
    found = agreement("lru", run_of(900), [run_of(1000), run_of(1100), run_of(980)])
    assert found.error == pytest.approx(-0.1)
    assert found.noise == pytest.approx(0.06)
    assert (found.hit_difference, found.bytes_difference, found.repeats) == (0.0, 0.0, 3)
    assert found.predicted_stall_seconds == found.measured_stall_seconds
    assert not math.isnan(found.measured_hit_rate)
