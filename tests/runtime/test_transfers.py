"""Transfers: the session's backend on a copy stream."""

import time
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from offload_setup import ForcedPolicy, fast_standin, flat_costs, random_arena

from policies.api import CPU, FETCH, GPU, Routing, Shape
from policies.compile import python_kernel
from policies.decision import DEMAND, PREFETCH, STREAMED
from policies.ledger import begin_fill, publish
from policies.session import Session
from runtime.device import COMPUTE, DeviceError
from runtime.expert_layout import ExpertLayout
from runtime.hazards import HazardChecker
from runtime.host_arena import HostArena
from runtime.slots import SlotPool, slot_name
from runtime.standin import StandIn
from runtime.transfers import Transfers

begin_fill = python_kernel(begin_fill)
publish = python_kernel(publish)

LAYOUT = ExpertLayout(layers=2, experts=4, hidden=16, width=16, dtype=torch.float32)
SLOTS, STAGING = 2, 1


class Bench:
    """A pool of two slots and one staging buffer; expert e's bytes are easy to tell apart."""

    def __init__(self, rate: float | None = None) -> None:
        self.checker = HazardChecker()
        self.device: StandIn = fast_standin(self.checker, rate)
        self.arena: HostArena = random_arena(LAYOUT, self.device)
        self.pool = SlotPool(LAYOUT, SLOTS, STAGING, self.device)
        self.transfers = Transfers(self.device, self.arena, self.pool)

    def read(self, expert: int, slot: int, into: list[torch.Tensor]) -> None:
        compute = self.device.stream(COMPUTE)
        self.device.wait(compute, self.transfers.event_of(slot, expert))
        event = self.device.run(
            compute, lambda: into.append(self.pool.bytes_of(slot).clone()), (slot_name(slot),)
        )
        self.transfers.read(slot, event)

    def published(self) -> list[tuple[int, int]]:
        slots, generations = self.transfers.landed()
        return list(zip(slots.tolist(), generations.tolist(), strict=True))


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.device.close()


def test_copies_land_in_order_with_their_bytes(bench: Bench) -> None:
    bench.transfers.start_copy(5, 1, 11, DEMAND)
    bench.transfers.start_copy(2, 0, 12, PREFETCH)
    bench.transfers.drain()
    bench.transfers.publish(bench.device.clock_ns())
    assert bench.published() == [(1, 11), (0, 12)]
    assert bench.published() == []
    assert torch.equal(bench.pool.bytes_of(1), bench.arena.bytes_of(5))
    assert torch.equal(bench.pool.bytes_of(0), bench.arena.bytes_of(2))


def half_landed(bench: Bench) -> bool:
    return bool(bench.pool.gate_up(0).isnan().any() or bench.pool.down(0).isnan().any())


def test_a_copy_is_not_published_before_it_has_landed() -> None:
    bench = Bench(rate=1_500)  # an expert of 3072 bytes takes 2 s
    bench.transfers.start_copy(0, 0, 1, DEMAND)
    bench.transfers.publish(bench.device.clock_ns())
    assert bench.published() == []
    until = time.monotonic() + 60
    while not half_landed(bench) and time.monotonic() < until:
        time.sleep(0.001)
    assert half_landed(bench)
    bench.transfers.drain()
    bench.transfers.publish(bench.device.clock_ns())
    assert bench.published() == [(0, 1)]
    bench.device.close()


def test_what_lands_after_the_moment_of_a_decision_is_for_the_next_one(bench: Bench) -> None:
    moment = bench.device.clock_ns()
    bench.transfers.start_copy(0, 0, 1, DEMAND)
    bench.transfers.drain()
    bench.transfers.publish(moment)
    assert bench.published() == []
    bench.transfers.publish(bench.device.clock_ns())
    assert bench.published() == [(0, 1)]


def test_a_staging_buffer_is_not_overwritten_before_it_was_read() -> None:
    bench, read = Bench(rate=1e6), []
    staging = SLOTS
    for expert in (3, 6, 1):
        bench.transfers.start_copy(expert, staging, 0, STREAMED)
    bench.transfers.start_copy(2, 0, 1, DEMAND)  # behind them, although its slot is free
    for expert in (3, 6, 1):
        bench.read(expert, staging, read)
    bench.read(2, 0, read)
    bench.device.join(bench.device.stream(COMPUTE))
    expected = [bench.arena.bytes_of(expert) for expert in (3, 6, 1, 2)]
    assert all(torch.equal(a, b) for a, b in zip(read, expected, strict=True))
    assert bench.checker.hazards == []
    assert bench.published() == []  # streamed copies never count as landed in a slot
    bench.device.close()


def test_draining_without_the_reader_of_a_staging_buffer_is_an_error(bench: Bench) -> None:
    bench.transfers.start_copy(0, SLOTS, 0, STREAMED)
    bench.transfers.start_copy(1, SLOTS, 0, STREAMED)
    with pytest.raises(RuntimeError, match="waits for a reader"):
        bench.transfers.drain()


def test_reading_a_slot_that_holds_another_expert_is_an_error(bench: Bench) -> None:
    bench.transfers.start_copy(0, 0, 1, DEMAND)
    with pytest.raises(RuntimeError, match="copy of expert 3 is not on the link"):
        bench.transfers.event_of(0, 3)
    with pytest.raises(RuntimeError, match="not on the link"):
        bench.transfers.event_of(1, 0)


def test_a_failed_copy_surfaces_at_the_next_call(bench: Bench) -> None:
    bench.arena.rows = bench.arena.rows[:3]  # expert 5 has no bytes any more
    bench.transfers.start_copy(1, 0, 1, DEMAND)
    with pytest.raises(IndexError):
        bench.transfers.start_copy(5, 1, 1, DEMAND)

    def fail() -> None:
        raise OSError("bus error")

    stream = bench.device.stream("copy")
    bench.device.run(stream, fail)
    bench.transfers.start_copy(2, 1, 2, DEMAND)
    with pytest.raises(DeviceError, match="bus error"):
        bench.transfers.drain()


def test_records_tell_when_and_what(bench: Bench) -> None:
    bench.transfers.where(pass_index=4, layer=1)
    bench.transfers.start_copy(6, 1, 9, PREFETCH)
    bench.transfers.drain()
    (record,) = bench.transfers.take_records()
    assert (record.expert, record.slot, record.generation, record.kind) == (6, 1, 9, PREFETCH)
    assert (record.pass_index, record.layer, record.size) == (4, 1, LAYOUT.expert_bytes)
    assert record.issue_ns <= record.begin_ns <= record.landing_ns
    assert bench.transfers.take_records() == []


def new_session(bench: Bench) -> Session:
    shape = Shape(2, 4, 2, SLOTS, STAGING, 2, False)
    return Session(ForcedPolicy("FETCH"), shape, flat_costs(), bench.transfers)


def test_slot_transitions_as_scripted(bench: Bench) -> None:
    """begin A, begin A, begin B, begin C over A while FILLING, landed A, read A, C over A."""
    session = new_session(bench)
    ledger, (a, b, c) = session.ledger, (0, 1, 2)
    assert begin_fill(ledger, a, 0) == 0
    assert begin_fill(ledger, a, 1) != 0
    assert begin_fill(ledger, b, 1) == 0
    assert begin_fill(ledger, c, 0) != 0
    bench.transfers.start_copy(a, 0, int(ledger.slot_generation[0]), DEMAND)
    bench.transfers.drain()
    bench.transfers.publish(bench.device.clock_ns())
    slots, generations = bench.transfers.landed()
    assert publish(ledger, slots[0], generations[0]) == 0
    ledger.slot_readers[0] += 1
    assert begin_fill(ledger, c, 0) != 0
    ledger.slot_readers[0] -= 1
    assert begin_fill(ledger, c, 0) == 0


def test_after_a_reset_nothing_is_resident_and_the_bytes_are_gone(bench: Bench) -> None:
    routing = Routing(0, np.array([[0, 1]]))
    session = new_session(bench)
    session.enter_layer(routing)
    bench.transfers.drain()
    bench.transfers.publish(bench.device.clock_ns())
    session.leave_layer(0)
    assert set(session.enter_layer(routing).placement) == {GPU}

    bench.pool.invalidate(bench.device, bench.device.stream(COMPUTE))
    bench.device.join(bench.device.stream(COMPUTE))
    fresh = new_session(bench)  # a cold start is a new session
    decision = fresh.enter_layer(routing)
    assert set(decision.placement) <= {FETCH, CPU}
    assert decision.hit.sum() == 0
