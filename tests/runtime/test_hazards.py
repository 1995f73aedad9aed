"""The happens-before checker, alone and on slots that are filled and read again and again."""

import random

import pytest
import torch
from offload_setup import fast_standin, random_arena

from policies.decision import DEMAND
from runtime.device import COMPUTE
from runtime.expert_layout import ExpertLayout
from runtime.hazards import HazardChecker
from runtime.slots import SlotPool, slot_name
from runtime.standin import StandIn
from runtime.transfers import Transfers


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


class ForgetfulPool(SlotPool):
    """The mutation: it does not know who reads its slots."""

    def last_reader(self, slot: int) -> None:
        return None


LAYOUT = ExpertLayout(layers=1, experts=12, hidden=4, width=4, dtype=torch.float32)


def reuse_slots(pool_class: type[SlotPool], reuses: int, seed: int) -> tuple[int, int]:
    """Fill and read slots in random order; (wrong results, hazards)."""
    checker, choose = HazardChecker(), random.Random(seed)
    device: StandIn = fast_standin(checker)
    arena = random_arena(LAYOUT, device)
    pool = pool_class(LAYOUT, slots=3, staging=0, device=device)
    transfers = Transfers(device, arena, pool)
    compute, results, expected = device.stream(COMPUTE), [], []
    for number in range(reuses):
        expert, slot = choose.randrange(LAYOUT.total), choose.randrange(3)
        transfers.start_copy(expert, slot, number, DEMAND)
        device.wait(compute, transfers.event_of(slot, expert))
        for _ in range(choose.randrange(1, 3)):
            event = device.run(
                compute,
                lambda at=slot: results.append(pool.down(at).clone()),
                reads=(slot_name(slot),),
            )
            transfers.read(slot, event)
            expected.append(arena.down(expert))
        if choose.random() < 0.2:
            transfers.publish(device.clock_ns())  # the host looks, and so learns of some landings
            transfers.landed()
    device.synchronize(event)
    device.close()
    wrong = sum(not torch.equal(a, b) for a, b in zip(results, expected, strict=True))
    return wrong, len(checker.hazards)


@pytest.mark.parametrize("seed", range(3))
def test_slot_reuse_has_no_hazard_under_random_interleavings(seed: int) -> None:
    assert reuse_slots(SlotPool, reuses=1_000, seed=seed) == (0, 0)


@pytest.mark.slow
def test_a_hundred_thousand_slot_reuses_have_no_hazard() -> None:
    assert reuse_slots(SlotPool, reuses=100_000, seed=7) == (0, 0)


def test_without_the_reuse_wait_hazards_are_reported_whatever_the_timing() -> None:
    _, hazards = reuse_slots(ForgetfulPool, reuses=40, seed=0)
    assert hazards > 10
