"""Section start: how long commands take before they begin their work, each in fresh processes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from tempfile import TemporaryDirectory

import numpy as np

from experiments.benchmarks.measures import Bench, Measure
from experiments.commands import CONF

SECTION = "start"
HELP_GOAL_S = 0.5
WARM_GOAL_S = 1.0
COLD_GOAL_S = 20.0
IMPORT_NUMBA = ("-c", "import numba")
FIRST_RUN = ("-m", "experiments.benchmarks.first_run")
DEMO = (
    "all_cpu", "static_hot", "lru_fetch", "lru_cpu", "binary_prefetch", "freetoken", "hybrimoe",
    "spac", "ours", "belady", "window_oracle",
)  # fmt: skip


def measure_start(bench: Bench) -> Iterator[Measure]:
    """Help, warm start above importing numba, and the first use after an installation."""
    repeats = bench.size.repeats
    yield Measure(
        SECTION, "spac --help", seconds(("-m", "experiments", "--help"), repeats), "s",
        "at most", HELP_GOAL_S,
    )  # fmt: skip
    numba = seconds(IMPORT_NUMBA, repeats)
    yield Measure(SECTION, "import numba", numba, "s")
    seconds((*FIRST_RUN, "spac"), 1)  # fills the cache, if it was empty
    warm = seconds((*FIRST_RUN, "spac"), repeats)
    yield Measure(
        SECTION, "first simulated request, kernels on disk: above importing numba", warm - numba,
        "s", "at most", WARM_GOAL_S, note=f"{warm:.2f} s in all",
    )  # fmt: skip
    if not bench.size.cold:
        return
    seconds((*FIRST_RUN, *DEMO), 1)
    again = seconds((*FIRST_RUN, *DEMO), 1)
    with TemporaryDirectory() as cache:
        cold = seconds((*FIRST_RUN, *DEMO), 1, {"NUMBA_CACHE_DIR": cache})
    yield Measure(
        SECTION, "first use after an installation: compiling for the demo's policies",
        cold - again, "s", "at most", COLD_GOAL_S, note=f"{cold:.1f} s in all",
    )  # fmt: skip


def seconds(
    arguments: tuple[str, ...], repeats: int, change: Mapping[str, str] | None = None
) -> float:
    """Median wall time of Python with these arguments; an error of it is raised."""
    # The very code that is running here, wherever the command was called.
    path = os.pathsep.join(filter(None, (str(CONF.parent), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, **(change or {})}
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments], env=environment, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        times.append(time.perf_counter() - begin)
    return float(np.median(times))
