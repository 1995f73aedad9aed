"""CPU work under contention, against a simulation of every single nanosecond."""

from typing import Any

from hypothesis import given, strategies
from hypothesis import settings as hypothesis_settings

from simulator.clock import Clock
from simulator.lanes import Lanes
from simulator.link import Copy, Link, Process

Gaps = list[int]


def by_nanosecond(work_ns: int, begin_ns: int, busy: list[tuple[int, int]], q: int) -> int:
    """First ns with 1024 * idle + q * busy >= 1024 * work since `begin_ns`."""
    done, now = 0, begin_ns
    while done < 1024 * work_ns:
        done += q if any(begin <= now < end for begin, end in busy) else 1024
        now += 1
    return now


def play(work_ns: int, begin_ns: int, gaps: Gaps, copy_ns: int, q: int) -> tuple[int, Any]:
    """End of the work, and the intervals in which the link was busy."""
    env = Clock()
    landed: list[Copy] = []
    link = Link(env, copy_ns, landed.append)
    lanes = Lanes(env, link, q, dispatch_ns=0, return_ns=0, early=False, serial=False)
    ends: list[int] = []

    def issue() -> Process:
        for number, gap in enumerate(gaps):
            yield env.timeout(gap)
            link.issue(Copy(number, number, 0, 0, 0, 0, 0, env.event(), env.event()))

    def work() -> Process:
        yield env.timeout(begin_ns)
        yield from lanes.compute(work_ns)
        ends.append(env.now_ns)

    env.process(issue())
    env.process(work())
    env.run()
    return ends[0], [(copy.begin_ns, copy.landing_ns) for copy in landed]


@hypothesis_settings(max_examples=300, deadline=None)
@given(
    work_ns=strategies.integers(1, 120),
    begin_ns=strategies.integers(0, 60),
    gaps=strategies.lists(strategies.integers(0, 40), max_size=6),
    copy_ns=strategies.integers(1, 40),
    q=strategies.integers(1, 1024),
)
def test_work_ends_at_the_first_possible_nanosecond(
    work_ns: int, begin_ns: int, gaps: Gaps, copy_ns: int, q: int
) -> None:
    end_ns, busy = play(work_ns, begin_ns, gaps, copy_ns, q)
    assert end_ns == by_nanosecond(work_ns, begin_ns, busy, q)


def test_full_rate_where_nothing_is_copied() -> None:
    assert play(100, 7, [], 10, 1)[0] == 107
