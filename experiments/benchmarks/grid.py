"""Section grid: the same comparison with one process and with two, and whether it gives the same
bytes."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, getrusage

from rich.console import Console

from experiments.benchmarks.measures import Bench, Measure
from experiments.commands import COMMANDS
from experiments.compare import jobs_from
from experiments.comparison import Job, play_all, table_of
from experiments.configuration import compose_config

SECTION = "grid"
POLICIES = ("lru_cpu", "lfu_cpu", "spac", "freetoken", "belady")
GAMMAS = (2, 4, 6, 8)
GOAL = 1.8


def measure_grid(bench: Bench) -> Iterator[Measure]:
    """Seconds a cell, the gain of a second process, the difference in bytes."""
    jobs = grid_jobs(bench.size.cells)
    list(play_all(jobs[:1], 1))  # kernels and trace are there before the clock starts
    one, two = played(jobs, 1), played(jobs, 2)
    yield Measure(
        SECTION, "one process: a cell", one.wall_s / len(jobs), "s", note=f"{len(jobs)} cells"
    )  # fmt: skip
    yield Measure(
        SECTION, "two processes: times as fast", one.wall_s / two.wall_s, "x", "at least", GOAL,
        note=f"CPU {one.here_s:.1f} s alone; {two.here_s:.1f} s and {two.beside_s:.1f} s",
    )  # fmt: skip
    yield Measure(SECTION, "tables that differ", one.table != two.table, "of 1", "at most", 0)


@dataclass(frozen=True)
class Played:
    """Seconds by the wall clock, of CPU in this process and in workers, and the table as CSV."""

    wall_s: float
    here_s: float
    beside_s: float
    table: str


def grid_jobs(cells: int) -> list[Job]:
    """The first `cells` of a grid over cache ratios, windows and policies on one bundled trace."""
    per_ratio = len(GAMMAS) * len(POLICIES)
    ratios = [round(0.05 * step, 2) for step in range(1, -(-cells // per_ratio) + 1)]
    words = [
        "trace=[code]", f"policy=[{','.join(POLICIES)}]", f"gamma=[{','.join(map(str, GAMMAS))}]",
        f"cache_ratio=[{','.join(map(str, ratios))}]", "no_speculation=null",
    ]  # fmt: skip
    return jobs_from(compose_config(COMMANDS["compare"], words), Console(quiet=True))[:cells]


def played(jobs: list[Job], workers: int) -> Played:
    """All jobs, once."""
    begin, here, beside = time.perf_counter(), time.process_time(), children_s()
    rows = dict(play_all(jobs, workers))
    return Played(
        time.perf_counter() - begin, time.process_time() - here, children_s() - beside,
        table_of(rows).to_csv(index=False),
    )  # fmt: skip


def children_s() -> float:
    """CPU seconds of the processes that have ended."""
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
