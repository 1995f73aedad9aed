"""The happens-before checker, alone and on slots that are filled and read again and again."""

import pytest
from slot_traffic import SlotTraffic

from runtime.hazards import HazardChecker


class Mark:
    """An event for the checker: any object will do."""


def test_an_unordered_write_after_a_read_is_reported() -> None:
    checker = HazardChecker()
    checker.work("compute", reads=["a"], label="kernel")
    checker.work("copy", writes=["a"], label="fill")
    assert [hazard.kind for hazard in checker.hazards] == ["write after read"]
    assert "fill (copy) is not ordered after kernel (compute)" in str(checker.hazards[0])


@pytest.mark.parametrize("how", ["wait", "host"])
def test_an_event_or_the_host_orders_them(how: str) -> None:
    checker, read = HazardChecker(), Mark()
    checker.work("compute", reads=["a"])
    checker.record(read, "compute")
    checker.wait("copy", read) if how == "wait" else checker.host_saw(read)
    checker.work("copy", writes=["a"])
    assert checker.hazards == []


def test_order_passes_through_a_third_stream() -> None:
    checker, first, second = HazardChecker(), Mark(), Mark()
    checker.work("a", writes=["x"])
    checker.record(first, "a")
    checker.wait("b", first)
    checker.record(second, "b")
    checker.wait("c", second)
    checker.work("c", reads=["x"])
    assert checker.hazards == []


def test_an_event_recorded_before_the_work_orders_nothing() -> None:
    checker, early = HazardChecker(), Mark()
    checker.record(early, "compute")
    checker.work("compute", writes=["a"])
    checker.wait("copy", early)
    checker.work("copy", writes=["a"])
    assert [hazard.kind for hazard in checker.hazards] == ["write after write"]


def test_an_early_read_is_reported() -> None:
    checker = HazardChecker()
    checker.work("copy", writes=["a"])
    checker.work("compute", reads=["a"])
    assert [hazard.kind for hazard in checker.hazards] == ["read after write"]


@pytest.mark.parametrize("seed", range(3))
def test_slot_reuse_has_no_hazard_under_random_interleavings(seed: int) -> None:
    outcome = SlotTraffic(seed).run(reuses=1_000)
    assert outcome.reuses >= 1_000
    assert (outcome.wrong, outcome.kinds) == (0, [])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_thousand_slot_reuses_have_no_hazard(seed: int) -> None:
    """Ten seeds of 12,000 reuses each."""
    outcome = SlotTraffic(100 + seed).run(reuses=12_000)
    assert outcome.reuses >= 12_000
    assert (outcome.wrong, outcome.kinds) == (0, [])
