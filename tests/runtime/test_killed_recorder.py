"""A recorder killed at any moment leaves a readable trace that lacks at most the last part."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from traces.reader import open_trace
from traces.replay import open_replay, passes

ROUNDS = 20
DRIVER = Path(__file__).with_name("kill_driver.py")


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
def test_twenty_kills(tiny_path: Path, tmp_path: Path) -> None:
    arguments = [str(tiny_path), str(tmp_path), str(ROUNDS), "5"]
    finished = subprocess.run(
        [sys.executable, str(DRIVER), *arguments], capture_output=True, text=True, timeout=300
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    kills = [json.loads(line) for line in finished.stdout.splitlines()]
    assert len(kills) == ROUNDS
    whole = open_trace(tmp_path / "reference", verify=True).manifest
    assert whole.complete
    for kill in kills:
        trace = open_trace(tmp_path / kill["trace"], verify=True)
        parts = trace.manifest.parts
        # What is there is what an undisturbed recording wrote, byte for byte.
        assert parts == whole.parts[: len(parts)]
        # A part holds one request here. Requests before the running one were handed over; only the
        # newest of them may still have been waiting in memory.
        assert len(parts) >= kill["last_request"] - 1
        if parts:
            assert {window.request for window in passes(open_replay(trace), 2)} == set(
                range(len(parts))
            )
        assert trace.manifest.complete == (not kill["killed"])
    inside = sum(kill["inside_part"] for kill in kills)
    assert inside >= 10, f"only {inside} kills hit a part write"
    assert len({len(open_trace(tmp_path / kill["trace"]).manifest.parts) for kill in kills}) > 4
