"""Section grid: the same comparison with one process and with two, and whether it gives the same
bytes."""

import time
from collections.abc import Iterator

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
    one_s, one = played(jobs, 1)
    two_s, two = played(jobs, 2)
    yield Measure(SECTION, "one process: a cell", one_s / len(jobs), "s", note=f"{len(jobs)} cells")
    yield Measure(SECTION, "two processes: times as fast", one_s / two_s, "x", "at least", GOAL)
    yield Measure(
        SECTION, "tables that differ", int(one != two), "of 1", "at most", 0
    )  # fmt: skip


def grid_jobs(cells: int) -> list[Job]:
    """The first `cells` of a grid over cache ratios, windows and policies on one bundled trace."""
    per_ratio = len(GAMMAS) * len(POLICIES)
    ratios = [round(0.05 * step, 2) for step in range(1, -(-cells // per_ratio) + 1)]
    words = [
        "trace=[code]", f"policy=[{','.join(POLICIES)}]", f"gamma=[{','.join(map(str, GAMMAS))}]",
        f"cache_ratio=[{','.join(map(str, ratios))}]", "no_speculation=null",
    ]  # fmt: skip
    return jobs_from(compose_config(COMMANDS["compare"], words), Console(quiet=True))[:cells]


def played(jobs: list[Job], workers: int) -> tuple[float, str]:
    """(wall seconds, the table as CSV)."""
    begin = time.perf_counter()
    rows = dict(play_all(jobs, workers))
    spent = time.perf_counter() - begin
    return spent, table_of(rows).to_csv(index=False)
