"""A real Ctrl-C to a comparison with several processes: one line, exit code 130, readable rows."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd


def test_interrupted_processes(dense_trace: Path, tmp_path: Path) -> None:
    done = subprocess.Popen(
        [
            sys.executable, "-m", "experiments", "compare", f"trace={dense_trace}", "workers=2",
            "cache_ratio=[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9]", "gamma=[1,2,3,4]",
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
    pd.testing.assert_frame_equal(
        rows, pd.read_parquet(table.with_suffix(".parquet")), check_dtype=False
    )
