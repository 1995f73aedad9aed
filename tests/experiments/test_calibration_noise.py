"""A calibration that others disturbed says so, with numbers and a remedy."""

import pytest

from experiments.calibration_noise import noise_warnings, spread
from runtime.calibration_points import Point, point


def points(noisy: int, calm: int) -> list[Point]:
    wide = [point("expert, CPU", rows, [1e6, 1e6, 1e6, 4e6]) for rows in range(1, noisy + 1)]
    return wide + [point("link", size, [1e6, 1.01e6, 0.99e6]) for size in range(1, calm + 1)]


def test_a_quiet_machine_is_not_accused() -> None:
    assert noise_warnings(points(0, 20), 0.3, cores=2) == []
    assert noise_warnings(points(2, 20), 0.3, cores=2) == [], "a few outliers are usual"


def test_outliers_are_counted_and_the_worst_is_named() -> None:
    found = noise_warnings(points(3, 20), 0.3, cores=2)
    assert len(found) == 2 and all(line.startswith("warning: ") for line in found)
    assert "3 of 23 points vary by more than 50%" in found[0]
    assert "expert, CPU at 1, median 1.000 ms, 1.000 to 3.100 ms" in found[0]
    assert "calibrate again" in found[1] and "repeats=" in found[1]


@pytest.mark.parametrize(("load", "warned"), [(1.0, False), (1.1, True), (14.0, True)])
def test_the_load_before_it_began_is_told(load: float, warned: bool) -> None:
    found = noise_warnings(points(0, 5), load, cores=2)
    assert bool(found) == warned
    if warned:
        assert f"load average was {load:.1f} on 2 cores" in found[0]


def test_one_sample_has_no_spread() -> None:
    single = [point("synchronise", 0, [5e6]) for _ in range(3)]
    assert noise_warnings(single, 0.0, cores=2) == []
    assert spread(single[0]) == 0
