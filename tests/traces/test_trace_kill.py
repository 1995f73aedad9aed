"""A SIGKILL at any moment leaves a readable trace with at most the last part missing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from killed_writers import GAMMA, SHAPE
from trace_samples import assert_equal_rows

from policies.errors import UserError
from traces.atomic import TEMPORARY_PREFIX
from traces.check import check_trace
from traces.reader import open_trace
from traces.replay import open_replay, passes
from traces.synthetic import random_dense

KILLS = 24
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses fork and /proc")
def test_killed_writers_leave_readable_traces(tmp_path: Path) -> None:
    program = Path(__file__).with_name("killed_writers.py")
    result = subprocess.run(
        [sys.executable, str(program), str(tmp_path), str(KILLS), "7"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    assert result.returncode == 0, result.stderr
    outcomes = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(outcomes) == KILLS
    assert sum(outcome["inside_part"] for outcome in outcomes) >= 10
    for index, outcome in enumerate(outcomes):
        look_at(tmp_path / f"{index:02d}", outcome)


def look_at(path: Path, outcome: dict[str, int]) -> None:
    if not (path / "manifest.json").exists():
        # Killed before the first rename: there is no trace yet, and that is said.
        assert outcome["begun"] == 0
        with pytest.raises(UserError):
            open_trace(path)
        return
    trace = open_trace(path, verify=True)
    whole = random_dense(SHAPE, GAMMA, seed=0)
    parts = len(trace.manifest.parts)
    # A finished part may lack its entry in the manifest, but never more than this one.
    assert outcome["begun"] - 1 <= parts <= outcome["begun"]
    assert trace.manifest.complete is (parts == SHAPE.requests and trace.manifest.complete)
    assert_equal_rows(trace.load(), whole.take(whole.request < parts))
    report = check_trace(path)
    assert report.ok
    assert report.requests == parts
    leftovers = [entry.name for entry in path.iterdir() if entry.name.startswith(TEMPORARY_PREFIX)]
    for name in leftovers:
        assert any(name in fact for fact in report.facts)
    committed = sum(window.committed for window in passes(open_replay(trace), GAMMA))
    assert committed == parts * SHAPE.tokens
