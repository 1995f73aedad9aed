"""Every rule on slots, events and message buffers: with all of them nothing is reported, without
any one of them something is, whatever the timing of the run was.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from offload_setup import fast_standin
from slot_traffic import SLOTS, SlotTraffic

from policies.decision import DEMAND
from runtime.device import COMPUTE, COPY, ROUTER, DeviceError
from runtime.hazards import HazardChecker
from runtime.message_ring import HostRing, send_to_device, send_to_host
from runtime.router_message import RouterChannel
from runtime.slots import SlotPool, slot_name
from runtime.standin import StandIn
from runtime.standin_link import Link
from runtime.transfers import Transfers

REUSES = 300


class DeafOnCopy(StandIn):
    def wait(self, stream: Any, event: Any) -> None:
        if stream.name != COPY:
            super().wait(stream, event)


class DeafOnCompute(StandIn):
    def wait(self, stream: Any, event: Any) -> None:
        if stream.name != COMPUTE:
            super().wait(stream, event)


class DeafOnRouter(StandIn):
    def wait(self, stream: Any, event: Any) -> None:
        if stream.name != ROUTER:
            super().wait(stream, event)


class NeverWaits(StandIn):
    """The host does not wait either."""

    def synchronize(self, event: Any) -> None:
        pass


class CarelessPool(SlotPool):
    """Does not know who reads its slots."""

    def was_read(self, slot: int, event: Any) -> None:
        pass


class RememberingOne(SlotPool):
    """Knows the first reader of a content only."""

    def was_read(self, slot: int, event: Any) -> None:
        if self._last_reader[slot] is None:
            super().was_read(slot, event)


class OptimisticTransfers(Transfers):
    """Takes every copy for landed as soon as it is on the stream."""

    def _collect(self) -> None:
        while self._in_flight:
            copy = self._in_flight.popleft()
            self._published.append((copy.slot, copy.generation))


class ImpatientTransfers(Transfers):
    """Refills a staging buffer before the reader of its last content is queued."""

    def _issue(self) -> None:
        self._unread.clear()
        super()._issue()


class HastyRing(HostRing):
    """Hands a buffer out again without waiting for the copy that uses it."""

    def next_free(self, size: int) -> tuple[int, torch.Tensor]:
        self._turn += 1
        place = self._turn % len(self._buffers)
        return place, self._buffers[place][:size]


def slots(**classes: Any) -> list[str]:
    """Kinds of hazards of random traffic."""
    return SlotTraffic(3, **classes).run(REUSES).kinds


def invalidation(device_class: type[StandIn] = StandIn) -> list[str]:
    """Read a slot on one stream, invalidate the pool on another."""
    traffic = SlotTraffic(0, device_class=device_class)
    traffic.read(0, traffic.fill(0, DEMAND), behind_event=True)
    traffic.pool.invalidate(traffic.device, traffic.device.stream("other"))
    return traffic.end().kinds


def ring_to_device(ring_class: type[HostRing] = HostRing) -> list[str]:
    """Two messages in a row from one buffer, over a slow link."""
    checker = HazardChecker()
    device = StandIn({"slow": Link(1e6)}, checker)
    ring, stream = ring_class(device, 1, 4_000, "ring"), device.stream("slow")
    arrived = [torch.empty(4_000, dtype=torch.uint8) for _ in range(2)]
    for value, target in enumerate(arrived):
        payload = torch.full((4_000,), value + 1, dtype=torch.uint8)
        send_to_device(device, ring, payload, target, stream)
    device.join(stream)
    device.close()
    if not checker.hazards:
        assert [set(tensor.tolist()) for tensor in arrived] == [{1}, {2}]
    return [hazard.kind for hazard in checker.hazards]


def router(device_class: type[StandIn] = StandIn) -> list[str]:
    """Messages of several layers."""
    checker = HazardChecker()
    device = device_class({}, checker)
    channel = RouterChannel(device)
    for layer in range(6):
        experts = torch.full((2, 2), layer, dtype=torch.int64)
        message = channel.post(experts, torch.ones(2, 2), None, torch.zeros(2, 4)).wait()
        assert (message.experts == layer).all()
    device.close()
    return [hazard.kind for hazard in checker.hazards]


def message_read(wait: bool) -> list[str]:
    """A message of 5 ms, read with or without waiting for it."""
    checker = HazardChecker()
    device = StandIn({ROUTER: Link(None, latency_ns=5_000_000)}, checker)
    ring = HostRing(device, 1, 64, "ring")
    sent = send_to_host(device, ring, torch.ones(64, dtype=torch.uint8), device.stream(ROUTER))
    try:
        received = sent.wait() if wait else sent.read()
        assert received.tolist() == [1] * 64
    finally:
        device.close()
    return [hazard.kind for hazard in checker.hazards]


def late_read(size: int) -> list[str]:
    """The first of two messages, read after the second was sent, in a ring of `size`."""
    device = fast_standin(HazardChecker())
    ring, stream = HostRing(device, size, 64, "ring"), device.stream(ROUTER)
    payload = torch.ones(64, dtype=torch.uint8)
    sent = [send_to_host(device, ring, payload, stream) for _ in range(2)]
    try:
        sent[0].wait()
    finally:
        device.close()
    return []


def unnoted_early_reader(noted: bool) -> list[str]:
    """A reader whose slots are known only afterwards, as with residents started early."""
    traffic = SlotTraffic(0)
    expert = traffic.fill(0, DEMAND)
    device, transfers = traffic.device, traffic.transfers
    device.wait(traffic.compute, transfers.event_of(0, expert))
    event = device.run(traffic.compute, lambda: None)
    device.has_read(event, [slot_name(0)])
    if noted:
        transfers.read(0, event)
    traffic.fill(0, DEMAND)
    return traffic.end().kinds


Scenario = Callable[[], list[str]]

RULES: dict[str, tuple[Scenario, Scenario]] = {
    "a copy waits for the last reader of its slot": (
        slots,
        lambda: slots(device_class=DeafOnCopy),
    ),
    "a reader waits for the copy it needs": (slots, lambda: slots(device_class=DeafOnCompute)),
    "every reader of a slot is noted": (slots, lambda: slots(pool_class=CarelessPool)),
    "the last reader counts, not the first": (slots, lambda: slots(pool_class=RememberingOne)),
    "a copy has landed once its event has happened": (
        slots,
        lambda: slots(transfers_class=OptimisticTransfers),
    ),
    "a staging buffer is refilled behind its reader": (
        slots,
        lambda: slots(transfers_class=ImpatientTransfers),
    ),
    "invalidating waits for the readers": (
        invalidation,
        lambda: invalidation(NeverWaitsOnOthers),
    ),
    "a ring buffer is refilled after its copy": (
        ring_to_device,
        lambda: ring_to_device(HastyRing),
    ),
    "the router's message waits for the router": (router, lambda: router(DeafOnRouter)),
    "a message is read after it has arrived": (
        lambda: message_read(wait=True),
        lambda: message_read(wait=False),
    ),
    "a message is read before its buffer is used again": (
        lambda: late_read(size=2),
        lambda: late_read(size=1),
    ),
    "readers that started early are noted": (
        lambda: unnoted_early_reader(noted=True),
        lambda: unnoted_early_reader(noted=False),
    ),
}


class NeverWaitsOnOthers(StandIn):
    """Deaf on all streams but the two of the engine."""

    def wait(self, stream: Any, event: Any) -> None:
        if stream.name in (COPY, COMPUTE):
            super().wait(stream, event)


@pytest.mark.parametrize("rule", RULES)
def test_with_the_rule_nothing_is_reported(rule: str) -> None:
    kept, _ = RULES[rule]
    assert kept() == []


@pytest.mark.parametrize("rule", RULES)
def test_without_the_rule_it_is_detected(rule: str) -> None:
    """By the checker, or by a refusal of the component itself."""
    _, broken = RULES[rule]
    try:
        found = broken()
    except (DeviceError, RuntimeError) as refusal:
        found = [str(refusal)]
    assert found


@pytest.mark.parametrize("seed", range(5))
def test_detection_does_not_depend_on_timing(seed: int) -> None:
    """On a fast link the bytes are nearly always right; the reports are there all the same."""
    outcome = SlotTraffic(seed, device_class=DeafOnCopy).run(REUSES)
    assert outcome.kinds.count("write after read") > REUSES // 20


def test_slots_and_staging_both_have_traffic() -> None:
    traffic = SlotTraffic(3)
    traffic.run(REUSES)
    assert set(traffic.held) > set(range(SLOTS))
