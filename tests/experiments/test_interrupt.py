"""A real Ctrl-C to a comparison with several processes: one line, exit code 130, readable rows."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

# Long enough to be still at work when the first rows have been written.
MANY_RATIOS = ",".join(f"{ratio / 100:g}" for ratio in range(10, 95, 4))


def test_interrupted_processes(dense_trace: Path, tmp_path: Path) -> None:
    done = subprocess.Popen(
        [
            sys.executable, "-m", "experiments", "compare", f"trace={dense_trace}", "workers=2",
            f"cache_ratio=[{MANY_RATIOS}]", "gamma=[1,2,3,4]",
        ],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    table = tmp_path / "outputs" / "compare" / "1" / "table.csv"
    deadline = time.monotonic() + 120
    while not table.exists() and time.monotonic() < deadline and done.poll() is None:
        time.sleep(0.1)
    os.killpg(done.pid, signal.SIGINT)  # as a terminal does: the whole group
    _, errors = done.communicate(timeout=60)
    assert done.returncode == 130
    assert errors.strip().splitlines()[-1] == "interrupted: what was finished is kept"
    assert "Traceback" not in errors
    rows = pd.read_csv(table)
    assert len(rows) >= 1 and rows["tokens_per_second"].notna().all()
    same = pd.read_parquet(table.with_suffix(".parquet")).drop(columns="hits_by_layer")
    # An empty text is an empty field of a CSV, which pandas reads as missing.
    pd.testing.assert_frame_equal(
        rows.astype(object).fillna(""), same.astype(object).fillna(""), check_dtype=False
    )


def worker_of(parent: int) -> int:
    """The process that plays cells for `parent`; 0 while there is none."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = path.read_text().rpartition(")")[2].split()
            words = path.with_name("cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if int(after_name[1]) == parent and b"spawn_main" in words:
            return int(path.parent.name)
    return 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the worker in /proc")
def test_a_killed_worker_is_one_line_and_keeps_the_rows(dense_trace: Path, tmp_path: Path) -> None:
    done = subprocess.Popen(
        [
            sys.executable, "-m", "experiments", "compare", f"trace={dense_trace}", "workers=2",
            "cache_ratio=[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9]", "gamma=[1,2,3,4]",
        ],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not (worker := worker_of(done.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(worker, signal.SIGKILL)
    _, errors = done.communicate(timeout=60)
    assert done.returncode == 2
    (line,) = errors.strip().splitlines()
    assert line.startswith("error: a worker process was killed, perhaps for lack of memory")
    assert len(pd.read_csv(tmp_path / "outputs" / "compare" / "1" / "table.csv")) >= 1
