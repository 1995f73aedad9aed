"""The stand-in device: order, events, real bytes at a real rate, errors, stopping."""

import threading
import time
from itertools import pairwise

import pytest
import torch
from offload_setup import engine_threads, fast_standin

from policies.errors import UserError
from runtime.device import COMPUTE, COPY, DeviceError
from runtime.standin import StandIn, standin
from runtime.standin_link import Link


def filled(size: int, value: int) -> torch.Tensor:
    return torch.full((size,), value, dtype=torch.uint8)


def test_a_stream_works_in_order_and_events_follow_their_work() -> None:
    device, done = fast_standin(), []
    stream = device.stream(COMPUTE)
    for number in range(100):
        event = device.run(stream, lambda n=number: done.append(n))
    device.synchronize(event)
    assert done == list(range(100))
    assert device.done(event)
    device.close()


def test_a_stream_waits_for_an_event_of_another_and_the_host_does_not() -> None:
    device, gate, order = fast_standin(), threading.Event(), []
    first, second = device.stream("first"), device.stream("second")

    def open_late() -> None:
        gate.wait()
        order.append("first")

    opened = device.run(first, open_late)
    device.wait(second, opened)
    last = device.run(second, lambda: order.append("second"))
    assert not device.done(last)
    gate.set()
    device.synchronize(last)
    assert order == ["first", "second"]
    device.close()


def test_new_device_memory_is_nan() -> None:
    device = fast_standin()
    assert device.alloc_device((3, 5), torch.float32).isnan().all()
    assert device.alloc_device((4,), torch.bfloat16).isnan().all()
    device.close()


def test_a_copy_moves_the_bytes_and_takes_latency_plus_bytes_over_rate() -> None:
    device = standin(bytes_per_second=10e6, latency_ns=5_000_000)
    source, target = torch.arange(100_000, dtype=torch.uint8), filled(100_000, 1)
    issued = device.clock_ns()
    event = device.copy(target, source, device.stream(COPY))
    device.synchronize(event)
    assert torch.equal(target, source)
    assert device.end_ns(event) - issued >= 15_000_000  # 5 ms + 10 ms, by its own clock
    device.close()


def test_copies_queue_behind_each_other_and_late_wake_ups_do_not_add_up() -> None:
    device = standin(bytes_per_second=50e6, latency_ns=0)
    stream, source = device.stream(COPY), filled(50_000, 7)
    events = [device.copy(filled(50_000, 0), source, stream) for _ in range(20)]
    device.synchronize(events[-1])
    begins = [device.begin_ns(event) for event in events]
    assert all(later - earlier >= 1_000_000 for earlier, later in pairwise(begins))
    assert begins[-1] - begins[0] <= 19 * 1_000_000 + 1_000  # 1 ms each, exactly
    device.close()


def test_a_half_landed_copy_shows_neither_old_nor_all_new_bytes() -> None:
    device = standin(bytes_per_second=4e3, latency_ns=0)  # 40 s
    source, target = torch.zeros(40_000), torch.ones(40_000)
    event = device.copy(target, source, device.stream(COPY))
    while (target == 1).any():
        time.sleep(0.001)
    assert not device.done(event)
    assert target.isnan().any()
    device.close()


def test_an_error_reaches_all_who_wait_for_the_stream_or_its_events() -> None:
    device = fast_standin()
    first, second = device.stream("first"), device.stream("second")

    def fail() -> None:
        raise ValueError("no such row")

    failed = device.run(first, fail)
    device.wait(second, failed)
    after = device.run(second, lambda: None)
    for event in (failed, after):
        with pytest.raises(DeviceError, match="ValueError: no such row"):
            device.synchronize(event)
    with pytest.raises(DeviceError, match="no such row"):
        device.join(second)
    device.close()


def test_waiting_for_an_event_that_was_never_recorded_is_an_error() -> None:
    device = fast_standin()
    with pytest.raises(DeviceError, match="never recorded"):
        device.wait(device.stream(COPY), device.event())
    with pytest.raises(DeviceError, match="never recorded"):
        device.synchronize(device.event())
    device.close()


def test_sizes_of_a_copy_must_agree() -> None:
    device = fast_standin()
    with pytest.raises(DeviceError, match="4 bytes into 3"):
        device.copy(filled(3, 0), filled(4, 0), device.stream(COPY))
    device.close()


def test_closing_ends_a_slow_copy_and_all_threads() -> None:
    device = standin(bytes_per_second=1e3, latency_ns=0)
    device.copy(filled(100_000, 0), filled(100_000, 1), device.stream(COPY))
    later = device.run(device.stream(COPY), lambda: None)
    begin = time.monotonic()
    device.close()
    device.close()
    assert time.monotonic() - begin < 50.0  # of the copy's 100
    assert engine_threads() == []
    with pytest.raises(DeviceError, match="closed"):
        device.synchronize(later)
    with pytest.raises(DeviceError, match="closed"):
        device.stream(COPY)


def test_device_memory_has_an_end() -> None:
    device = StandIn({}, device_bytes=1_000)
    device.alloc_device((600,), torch.uint8)
    assert device.memory().device_available == 400
    with pytest.raises(UserError, match="1000, of which 600"):
        device.alloc_device((401,), torch.uint8)
    device.close()


@pytest.mark.parametrize("rate", [0, -1.0])
def test_a_link_without_speed_is_refused(rate: float) -> None:
    with pytest.raises(UserError, match="above 0"):
        Link(rate)


def test_a_negative_latency_is_refused() -> None:
    with pytest.raises(UserError, match="negative"):
        Link(1.0, -1)


def test_an_inline_stream_works_at_once_and_in_order() -> None:
    device, order = standin(1e9, 0), []
    compute, copy = device.stream(COMPUTE), device.stream(COPY)
    target = filled(100, 0)
    landed = device.copy(target, filled(100, 5), copy)
    device.wait(compute, landed)
    event = device.run(compute, lambda: order.append(int(target.sum())))
    assert order == [500]
    assert device.done(event)
    assert device.begin_ns(event) <= device.end_ns(event)
    device.close()


def test_an_error_on_an_inline_stream_stays_there_and_is_passed_on() -> None:
    device = standin(1e9, 0)
    compute, copy = device.stream(COMPUTE), device.stream(COPY)
    failed = device.run(compute, lambda: [][1])
    skipped = device.run(compute, lambda: pytest.fail("must be skipped"))
    device.wait(copy, failed)
    copied = device.copy(filled(3, 0), filled(3, 1), copy)
    for event in (failed, skipped, copied):
        with pytest.raises(DeviceError, match="IndexError"):
            device.synchronize(event)
    device.close()
    assert engine_threads() == []
