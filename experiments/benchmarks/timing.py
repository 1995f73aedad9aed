"""Timing of calls: the spread of many single ones, and the CPU seconds of a long one."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")


@dataclass(frozen=True)
class Spread:
    """Whole ns of many timings: median and 99th percentile, both of timings that were taken."""

    median_ns: int
    p99_ns: int


def spread(times_ns: Sequence[int]) -> Spread:
    """Of at least one timing."""
    median, p99 = np.percentile(np.array(times_ns, np.int64), [50, 99], method="higher")
    return Spread(int(median), int(p99))


def spread_of_calls(calls: Iterable[Callable[[], Any]]) -> Spread:
    """Each call timed once, by the wall clock."""
    times = []
    for call in calls:
        begin = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - begin)
    return spread(times)


def core_seconds(call: Callable[[], Result], repeats: int) -> tuple[float, Result]:
    """(median over `repeats` of the CPU seconds that this process spends in `call`, what it last
    returned): what it takes of one core, even where other programs want the core too."""
    times, results = [], []
    for _ in range(repeats):
        begin = time.process_time_ns()
        results = [call()]
        times.append(time.process_time_ns() - begin)
    return float(np.median(times)) / 1e9, results[0]
