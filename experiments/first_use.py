"""The first use after an installation, or after a change of the kernels' sources: a second process
compiles half of them, and how long it took is said (that it begins: experiments/compile_notice.py).
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from policies.sources import ROOT
from simulator.compiled_pass import play_passes

BESIDE = ("-P", "-m", "policies.ahead")


@contextmanager
def compiling_beside() -> Iterator[None]:
    """Around a run of the compiled engine. Where its kernels are on the disk or in this process,
    nothing happens."""
    if are_compiled():
        yield
        return
    begun = time.perf_counter()
    beside = start_beside() if len(os.sched_getaffinity(0)) > 1 else None
    try:
        yield
    finally:
        if beside is not None:
            beside.kill()  # whatever it has not finished by now is compiled here already
            beside.wait()
    print(
        f"... and a first run: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True
    )  # fmt: skip


def are_compiled() -> bool:
    """True if this process has the loop of the engine, compiled last, or finds it on the disk."""
    if play_passes.signatures:
        return True
    name = f"{play_passes.__module__.rpartition('.')[2]}.{play_passes.__name__}"
    return any(Path(play_passes.stats.cache_path).glob(f"{name}-*.nbi"))


def start_beside() -> "subprocess.Popen[bytes]":
    """policies.ahead in a process group of its own, so that Ctrl-C is for this process alone. What
    goes wrong there is of no account: this process then compiles all."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, *BESIDE], env=os.environ | {"PYTHONPATH": path}, process_group=0,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
