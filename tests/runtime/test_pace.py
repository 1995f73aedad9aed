"""The padded clock: every rule of the simulated machine has its wait, and contention is exact."""

import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from offload_setup import flat_costs

from runtime.contention import contended_end
from runtime.device import COPY
from runtime.pace import Pace, slow_motion
from runtime.standin import StandIn
from runtime.standin_link import Link

torch.set_num_threads(1)
MILLISECOND = 1_000_000


def by_the_definition(begin: int, work: int, q: int, busy: list[tuple[int, int]]) -> int:
    """Nanosecond by nanosecond."""
    done, now = 0, begin
    while done < 1024 * work:
        done += q if any(start <= now < stop for start, stop in busy) else 1024
        now += 1
    return now


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 40), st.integers(1, 60), st.integers(1, 1024),
    st.lists(st.integers(1, 25), max_size=8),
)  # fmt: skip
def test_contended_work_ends_at_the_first_ns_that_is_enough(
    begin: int, work: int, q: int, gaps: list[int]
) -> None:
    edges = np.cumsum(gaps).tolist()
    busy = list(zip(edges[::2], edges[1::2], strict=False))
    if q < 100:
        work = min(work, 5)
    assert contended_end(begin, work, q, busy) == by_the_definition(begin, work, q, busy)


def test_slow_motion_stretches_times_and_nothing_else() -> None:
    costs = flat_costs(contention=700, needs_ns=np.arange(5))
    slow = slow_motion(costs, 20)
    assert slow.contention == 700 and slow.expert_bytes == costs.expert_bytes
    for name in set(costs._fields) - {"contention", "expert_bytes"}:
        np.testing.assert_array_equal(getattr(slow, name), np.asarray(getattr(costs, name)) * 20)


def test_decisions_share_one_host_and_hold_their_copies() -> None:
    costs = flat_costs(
        d2h_ns=10, needs_ns=np.array([7, 0, 0, 0, 5]), decision_layer_ns=100, decision_leave_ns=40
    )
    device = StandIn({COPY: Link(latency_ns=1)})
    pace = Pace(costs, device, frozenset({"router_mass"}))
    assert pace.enter(1000) == 1000 + 10 + 7 + 100
    pace.leave(1050)  # the host is busy until 1117
    assert pace.enter(1100) == 1117 + 40 + 100
    device.close()


def test_a_held_copy_begins_when_the_host_is_free() -> None:
    device = StandIn({COPY: Link(latency_ns=MILLISECOND)})
    src, dst = device.alloc_host(64), device.alloc_device((64,), torch.uint8)
    until = time.monotonic_ns() + 2000 * MILLISECOND  # long enough for a host that is held up
    device.hold_copies(until)
    event = device.copy(dst, src, device.stream(COPY))
    device.synchronize(event)
    assert device.begin_ns(event) == until
    assert device.link_busy(until) == [(until, until + MILLISECOND)]
    assert device.link_busy(until + MILLISECOND) == []
    device.close()


def test_cpu_work_waits_for_the_link_it_shares_memory_with() -> None:
    """10 ms of work at half speed while the link is busy: half of that time comes on top."""
    device = StandIn({COPY: Link(latency_ns=60 * MILLISECOND)})
    ones = (np.arange(9) > 0).astype(np.int64)
    pace = Pace(flat_costs(cpu_ns=ones * 5 * MILLISECOND, contention=512), device)
    src, dst = device.alloc_host(64), device.alloc_device((64,), torch.uint8)
    event = device.copy(dst, src, device.stream(COPY))
    begin = time.monotonic_ns()
    pace.cpu_experts(begin, [1, 3])
    took = time.monotonic_ns() - begin
    device.synchronize(event)
    beside = min(device.end_ns(event) - begin, 20 * MILLISECOND)  # none if the host was held up
    assert took >= 10 * MILLISECOND + max(0, beside) // 2
    device.close()


def test_late_work_is_counted_and_not_made_up_for() -> None:
    pace = Pace(flat_costs(draft_step_ns=1000))
    begin = time.monotonic_ns() - 50 * MILLISECOND
    ended = pace.draft_step(begin)
    assert ended is not None and ended >= begin + 50 * MILLISECOND
    assert (pace.waits, pace.overruns) == (1, 1)


@pytest.mark.parametrize("method", ["dense", "enter", "draft_step", "head", "cpu_begin"])
def test_without_costs_nothing_waits(method: str) -> None:
    pace = Pace(None)
    arguments = (0, 4, 4) if method == "dense" else (0,)
    assert getattr(pace, method)(*arguments) is None
    assert not pace.keeps_time and pace.waits == 0
