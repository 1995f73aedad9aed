"""Small messages: never read early, never overwritten while on their way."""

import pytest
import torch

from runtime.device import DeviceError
from runtime.message_ring import HostRing, send_to_device, send_to_host
from runtime.standin import StandIn
from runtime.standin_link import Link


def slow_device(bytes_per_second: float | None, latency_ns: int = 0) -> StandIn:
    return StandIn({"slow": Link(bytes_per_second, latency_ns)})


def test_a_message_cannot_be_read_before_it_has_arrived() -> None:
    device = slow_device(None, latency_ns=5_000_000)
    ring = HostRing(device, 1, 64, "test")
    payload = torch.arange(8, dtype=torch.float32)
    message = send_to_host(device, ring, payload, device.stream("slow"))
    with pytest.raises(DeviceError, match="before its copy had ended"):
        message.read()
    assert torch.equal(message.wait().view(torch.float32), payload)
    assert torch.equal(message.read().view(torch.float32), payload)
    device.close()


def test_two_messages_from_one_buffer_both_arrive_whole() -> None:
    device = slow_device(1e6)
    ring, stream = HostRing(device, 1, 20_000, "test"), device.stream("slow")
    payload = torch.full((20_000,), 1, dtype=torch.uint8)
    first, second = torch.zeros_like(payload), torch.zeros_like(payload)
    begin = device.clock_ns()
    send_to_device(device, ring, payload, first, stream)
    payload.fill_(2)
    event = send_to_device(device, ring, payload, second, stream)
    assert device.clock_ns() - begin >= 20_000_000  # the second waited for the first
    payload.fill_(3)
    device.synchronize(event)
    assert (first == 1).all()
    assert (second == 2).all()
    device.close()


def test_a_message_is_gone_once_its_buffer_is_used_again() -> None:
    device = slow_device(None)
    ring, stream = HostRing(device, 1, 64, "test"), device.stream("slow")
    old = send_to_host(device, ring, torch.zeros(4), stream)
    old.wait()
    send_to_host(device, ring, torch.ones(4), stream).wait()
    with pytest.raises(DeviceError, match="used again"):
        old.read()
    device.close()


def test_a_larger_message_enlarges_the_ring_without_losing_what_is_on_its_way() -> None:
    device = slow_device(1e6)
    ring, stream = HostRing(device, 2, 16, "test"), device.stream("slow")
    small = torch.zeros(16, dtype=torch.uint8)
    send_to_device(device, ring, torch.full_like(small, 9), small, stream)
    large = torch.zeros(5_000, dtype=torch.uint8)
    device.synchronize(send_to_device(device, ring, torch.full_like(large, 8), large, stream))
    assert (small == 9).all()
    assert (large == 8).all()
    device.close()
