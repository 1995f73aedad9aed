"""Section start: how long commands take before they begin their work, each in fresh processes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory

import numpy as np

from experiments.benchmarks.measures import Bench, Measure
from experiments.commands import COMMANDS, CONF
from experiments.configuration import compose_config

SECTION = "start"
HELP_GOAL_S = 0.5
WARM_GOAL_S = 1.0
COLD_GOAL_S = 20.0
IMPORT_NUMBA = ("-c", "import numba")
FIRST_RUN = ("-m", "experiments.benchmarks.first_run")


@dataclass(frozen=True)
class Taken:
    """Seconds of a process: by the wall clock, and of CPU (user and system)."""

    wall: float
    cpu: float

    def above(self, other: "Taken") -> "Taken":
        """What this process took more."""
        return Taken(self.wall - other.wall, self.cpu - other.cpu)


def measure_start(bench: Bench) -> Iterator[Measure]:
    """Help, warm start above importing numba, and the first use after an installation."""
    repeats = bench.size.repeats
    yield measure_of("spac --help", taken(("-m", "experiments", "--help"), repeats), HELP_GOAL_S)
    numba = taken(IMPORT_NUMBA, repeats)
    yield measure_of("import numba", numba, None)
    taken((*FIRST_RUN, "spac"), 1)  # fills the cache, if it was empty
    warm = taken((*FIRST_RUN, "spac"), repeats)
    what = "first simulated request, kernels on disk: above importing numba"
    yield measure_of(what, warm.above(numba), WARM_GOAL_S)
    if not bench.size.cold:
        return
    demo = (*FIRST_RUN, *compose_config(COMMANDS["demo"], []).policy)
    taken(demo, 1)
    again = taken(demo, 1)
    with TemporaryDirectory() as cache:
        cold = taken(demo, 1, {"NUMBA_CACHE_DIR": cache})
    what = "first use after an installation: compiling for the demo's policies"
    yield measure_of(what, cold.above(again), COLD_GOAL_S)


def measure_of(what: str, spent: Taken, goal: float | None) -> Measure:
    """The wall time, with the CPU time beside it: on a busy machine they differ."""
    bound = None if goal is None else "at most"
    return Measure(SECTION, what, spent.wall, "s", bound, goal, note=f"CPU {spent.cpu:.2f} s")


def taken(
    arguments: tuple[str, ...], repeats: int, change: Mapping[str, str] | None = None
) -> Taken:
    """Medians for Python with these arguments; an error of it is raised."""
    # The very code that is running here, wherever the command was called.
    path = os.pathsep.join(filter(None, (str(CONF.parent), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, **(change or {})}
    walls, cpus = [], []
    for _ in range(repeats):
        begin, before = time.perf_counter(), getrusage(RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL
        )
        after = getrusage(RUSAGE_CHILDREN)
        walls.append(time.perf_counter() - begin)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return Taken(float(np.median(walls)), float(np.median(cpus)))
