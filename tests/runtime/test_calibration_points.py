"""Fits: they find what they were made of, never fall, and are judged at points they did not see."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.calibration_points import Point, fit_link, fit_rows, held_out_error, point, rising


def made(curve: str, xs: list[int], times: list[float]) -> list[Point]:
    return [point(curve, x, [time]) for x, time in zip(xs, times, strict=True)]


def test_a_point_is_a_median_with_its_noise() -> None:
    found = point("copy", 64, [5.0, 1.0, 3.0, 2.0, 4.0])
    assert (found.median_ns, found.low_ns, found.high_ns, found.count) == (3, 1, 5, 5)


def test_a_link_is_found_again() -> None:
    sizes = [4096 << step for step in range(12)]
    times = [6_000 + size / 25.1 for size in sizes]  # 25.1 GB/s: bytes per ns
    latency, rate, points = fit_link(made("link", sizes, times))
    assert latency == pytest.approx(6_000, rel=1e-3)
    assert rate == pytest.approx(25.1e9, rel=1e-3)
    assert sum(one.held_out for one in points) == 2
    assert held_out_error(points) == pytest.approx(0, abs=1e-3)


def test_a_wrong_point_shows_in_the_held_out_error_only() -> None:
    sizes = [4096 << step for step in range(12)]
    times = [6_000 + size / 25.1 for size in sizes]
    times[7] *= 2  # held out
    latency, _, points = fit_link(made("link", sizes, times))
    assert latency == pytest.approx(6_000, rel=1e-3)
    assert held_out_error(points) == pytest.approx(0.25, rel=0.01)  # 50 % at one of two


def test_no_link_is_faster_than_light() -> None:
    latency, rate, _ = fit_link(made("link", [1000, 2000, 4000], [10.0, 40.0, 160.0]))
    assert latency == 0 and rate > 0


def test_rows_give_rising_whole_times_and_held_out_predictions() -> None:
    times, points = fit_rows(made("cpu", [1, 2, 3, 4, 8], [10.2, 20.0, 15.0, 40.0, 80.0]))
    assert list(times) == sorted(times) and all(isinstance(one, int) for one in times)
    (hidden,) = [one for one in points if one.held_out]
    assert hidden.x == 3 and hidden.predicted_ns == 30  # half-way between 2 and 4 tokens
    assert held_out_error(points) == pytest.approx(1.0)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=20))
def test_rising_is_the_best_non_falling_fit(values: list[int]) -> None:
    fit = rising(values)
    assert (np.diff(fit) >= -1e-9).all()
    assert fit.mean() == pytest.approx(np.mean(values))
    # No constant shift of a tail brings it nearer: the condition of isotonic regression.
    residual = np.asarray(values) - fit
    tails = residual[::-1].cumsum()[::-1]
    assert (tails <= 1e-6).all()


def test_nothing_held_out_gives_no_error() -> None:
    assert held_out_error(made("x", [1, 2], [1.0, 2.0])) is None
