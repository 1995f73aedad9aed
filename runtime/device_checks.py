"""What every device must do, as checks that run on any of them: in the tests on the stand-in, on a
GPU where there is one.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch

from policies.errors import UserError
from runtime.device import COMPUTE, COPY, ROUTER, Device, DeviceError
from runtime.message_ring import HostRing, send_to_device, send_to_host

Check = Callable[[Device], None]
MIB = 2**20
SLACK_NS = 2_000_000  # between the clocks of host and device
TOO_MUCH = 2**50


class CheckFailed(Exception):
    """The device does not do what the engine builds on; the message says what."""


def work_of_a_stream_runs_in_order(device: Device) -> None:
    """Each step needs the one before."""
    value = device.alloc_device((1024,), torch.float64)
    stream, expected = device.stream(COMPUTE), 0.0
    device.run(stream, _only(value.zero_))
    for number in range(40):
        event = device.run(stream, _only(lambda n=number: value.mul_(1.5).add_(n)))
        expected = expected * 1.5 + number
    device.synchronize(event)
    _require(bool((value.cpu() == expected).all()), "steps were left out or exchanged")


def copies_keep_every_byte(device: Device) -> None:
    """To the device and back, at even and odd sizes and places."""
    host, back = device.alloc_host(3 * MIB), device.alloc_host(3 * MIB)
    host.copy_(torch.arange(3 * MIB, dtype=torch.int64).mul_(2654435761).to(torch.uint8))
    there = device.alloc_device((3 * MIB,), torch.uint8)
    stream = device.stream(COPY)
    for first, size in ((0, 1), (7, 13), (64, 4096), (4095, 70_001), (0, 3 * MIB)):
        part = slice(first, first + size)
        back[part] = 0
        device.copy(there[part], host[part], stream)
        device.synchronize(device.copy(back[part], there[part], stream))
        _require(torch.equal(back[part], host[part]), f"{size} bytes at {first} came back changed")


def a_stream_waits_for_the_events_of_another(device: Device) -> None:
    """One slot, filled and read in turn, each after the other's event."""
    slot, size = device.alloc_device((4, MIB // 4), torch.uint8).view(-1), MIB
    sources = device.alloc_host(8 * size).view(8, size)
    sources.copy_(torch.arange(8, dtype=torch.uint8).unsqueeze(1).expand(8, size))
    wrong = device.alloc_device((1,), torch.int64)
    copy, compute = device.stream(COPY), device.stream(COMPUTE)
    read = device.run(compute, _only(wrong.zero_))
    for number in range(100):
        device.wait(copy, read)
        filled = device.copy(slot, sources[number % 8], copy, writes=("slot",))
        device.wait(compute, filled)
        count = _only(lambda n=number: wrong.add_((slot != n % 8).sum()))
        read = device.run(compute, count, reads=("slot",))
    device.synchronize(read)
    _require(int(wrong.cpu()) == 0, f"{int(wrong.cpu())} bytes were read too early or too late")


def small_messages_are_never_overwritten(device: Device) -> None:
    """Both directions through rings much shorter than the number of messages."""
    down, up = HostRing(device, 2, 4096, "up"), HostRing(device, 2, 4096, "down")
    compute, router = device.stream(COMPUTE), device.stream(ROUTER)
    for number in range(60):
        payload = torch.full((2 + number % 3, 513), number, dtype=torch.int32)
        there = torch.empty_like(payload, device=device.torch_device)
        arrived = send_to_device(device, down, payload, there, compute)
        payload.fill_(-1)
        device.wait(router, arrived)
        message = send_to_host(device, up, there, router)
        values = message.wait().view(torch.int32)
        _require(bool((values == number).all()), f"message {number} was changed on its way")


def events_tell_when_they_happened(device: Device) -> None:
    """On the host's clock, in order, not before the work was queued."""
    value = device.alloc_device((512, 512), torch.float32)
    compute, before = device.stream(COMPUTE), device.clock_ns()
    first = device.run(compute, _only(lambda: value.fill_(0.01).mm(value)))
    second = device.run(compute, _only(lambda: value.add_(1.0)))
    mark = device.event()
    device.record(mark, compute)
    device.synchronize(mark)
    after = device.clock_ns()
    _require(device.done(first) and device.done(second), "a finished event is not done")
    times = [before]
    for event in (first, second):
        times += [device.begin_ns(event), device.end_ns(event)]
    times += [device.end_ns(mark)]
    late = max(a - b for a, b in pairwise(times))
    _require(late <= SLACK_NS, f"times go back by {late} ns: {times}")
    _require(
        times[-1] <= after + SLACK_NS, f"an event happens {times[-1] - after} ns after its end"
    )


def an_event_nobody_recorded_is_refused(device: Device) -> None:
    """Waiting for it would mean waiting for nothing."""
    for wait in (
        lambda: device.wait(device.stream(COPY), device.event()),
        lambda: device.synchronize(device.event()),
    ):
        try:
            wait()
        except DeviceError:
            continue
        raise CheckFailed("a wait for an event that was never recorded went through")


def sizes_of_a_copy_must_agree(device: Device) -> None:
    """A copy that is too short would leave half of an old expert."""
    there = device.alloc_device((8,), torch.uint8)
    try:
        device.copy(there, device.alloc_host(7), device.stream(COPY))
    except DeviceError:
        return
    raise CheckFailed("7 bytes were copied into 8")


def too_much_memory_is_refused_with_its_size(device: Device) -> None:
    """As a user's error, not as a crash."""
    if device.torch_device.type == "cpu":
        return  # the host's system promises any amount
    try:
        device.alloc_device((TOO_MUCH,), torch.uint8)
    except UserError as error:
        _require(str(TOO_MUCH) in str(error), f"the message does not say the size: {error}")
        return
    raise CheckFailed(f"{TOO_MUCH} bytes of device memory were promised")


def a_closed_device_gives_no_streams(device: Device) -> None:
    """And closing twice does no harm. Must be the last check of a device."""
    device.close()
    device.close()
    try:
        device.stream(COPY)
    except DeviceError:
        return
    raise CheckFailed("a closed device gave a stream")


DEVICE_CHECKS: tuple[Check, ...] = (
    work_of_a_stream_runs_in_order,
    copies_keep_every_byte,
    a_stream_waits_for_the_events_of_another,
    small_messages_are_never_overwritten,
    events_tell_when_they_happened,
    an_event_nobody_recorded_is_refused,
    sizes_of_a_copy_must_agree,
    too_much_memory_is_refused_with_its_size,
    a_closed_device_gives_no_streams,
)


def _only(work: Callable[[], Any]) -> Callable[[], None]:
    """`work` without the tensor that it returns."""

    def do() -> None:
        work()

    return do


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise CheckFailed(otherwise)
