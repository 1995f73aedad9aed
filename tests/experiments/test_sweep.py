"""Named sweeps: killed and continued, byte for byte; other settings, other files, second starts."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from experiments.sweep import declare, difference, locked
from policies.errors import UserError
from tests.experiments.conftest import Spac

BASE = ("hardware=rtx4090", "model=trace", "draft=pair", "pictures=false", "no_speculation=null")
# 5 policies x 10 ratios x 4 windows
GRID = (
    "policy=[lru_cpu,lfu_cpu,spac,all_cpu,lru_fetch]", "gamma=[1,2,3,4]",
    f"cache_ratio=[{','.join(str(0.2 + 0.05 * step) for step in range(10))}]",
)  # fmt: skip
CELLS = 200
ROWS = "table.parquet"


def words(trace: Path, *more: str, name: str = "night", workers: int = 1) -> list[str]:
    return ["compare", f"trace={trace}", *BASE, f"sweep={name}", f"workers={workers}", *more]


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Name -> content and time of change, of the whole results there."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in (folder / "cells").glob("[!.]*.json")
    }


def killed_after(command: list[str], folder: Path, cells: int, pause: float) -> None:
    """Start a sweep and kill it, without warning, `pause` seconds after so many cells were kept."""
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments", *command],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        while len(list((folder / "cells").glob("*.json"))) < cells:
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(0.002)
        time.sleep(pause)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_killed_sweep_of_200_cells_goes_on(spac: Spac, dense_trace: Path, workers: int) -> None:
    assert spac(*words(dense_trace, *GRID, "bound=none", name="whole")).code == 0
    folder, draw = Path("outputs/compare/night"), random.Random(workers)
    command = words(dense_trace, *GRID, "bound=none", workers=workers)
    before: dict[str, tuple[bytes, int]] = {}
    for low in (1, 90):
        target = max(len(before) + 1, draw.randrange(low, low + 80))
        killed_after(command, folder, target, draw.random() / 50)
        now = files(folder)
        assert before.items() <= now.items(), "a finished cell was played again or lost"
        assert len(now) > len(before)
        before = now
    outcome = spac(*command)
    done = sum(json.loads(content)["result"].__class__ is dict for content, _ in before.values())
    assert outcome.code == 0 and f"continued: {done} of {CELLS} cells" in outcome.out
    final = files(folder)
    assert before.items() <= final.items(), "a finished cell was played again or lost"
    starts = [json.loads(content)["attempt"] for content, _ in final.values()]
    played = [one for one in final.values() if isinstance(json.loads(one[0])["result"], dict)]
    assert len(played) == CELLS and set(starts) == {1, 2, 3}
    whole = Path("outputs/compare/whole")
    assert (folder / ROWS).read_bytes() == (whole / ROWS).read_bytes()
    assert len(pd.read_parquet(folder / ROWS)) == CELLS


def test_a_killed_parent_takes_its_workers_along(tmp_path: Path) -> None:
    """A worker left alone would write cells beside the continued sweep, or wait for ever."""
    driver = (
        "import os, sys, time\n"
        "from tests.experiments.test_sweep import pid_to\n"
        "from experiments.workers import run_cells\n"
        "if __name__ == '__main__':\n"
        "    list(run_cells(pid_to, [sys.argv[1]] * 10000, range(10000), 3))\n"
    )
    (tmp_path / "driver.py").write_text(driver)
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "driver.py"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    pids: set[int] = set()
    deadline = time.monotonic() + 120
    while len(pids) < 3 and time.monotonic() < deadline:
        pids = {int(path.stem) for path in tmp_path.glob("*.pid")}
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(pids) == 3
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, pids))


def pid_to(folder: str) -> int:
    (Path(folder) / f"{os.getpid()}.pid").touch()
    time.sleep(0.02)
    return os.getpid()


def alive(pid: int) -> bool:
    """Running; a process that has ended but was not waited for yet is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


SMALL = ("policy=[spac,lru_cpu]", "cache_ratio=[0.2,0.4]", "gamma=2")


def test_the_same_command_again_plays_nothing(spac: Spac, dense_trace: Path) -> None:
    command = words(dense_trace, *SMALL)
    assert spac(*command).code == 0
    folder = Path("outputs/compare/night")
    first, table = files(folder), (folder / ROWS).read_bytes()
    outcome = spac(*words(dense_trace, *SMALL, workers=2))
    assert outcome.code == 0 and "continued: 4 of 4 cells" in outcome.out
    assert files(folder) == first, "cells, bounds or run logs were made again"
    assert (folder / ROWS).read_bytes() == table


def test_a_damaged_cell_is_played_again(spac: Spac, dense_trace: Path) -> None:
    command = words(dense_trace, *SMALL)
    assert spac(*command).code == 0
    folder = Path("outputs/compare/night")
    table = (folder / ROWS).read_bytes()
    rows = [
        p for p in sorted((folder / "cells").glob("[!.]*.json")) if b"tokens_per" in p.read_bytes()
    ]
    rows[0].write_bytes(rows[0].read_bytes()[:100])
    rows[1].write_bytes(rows[2].read_bytes())
    outcome = spac(*command)
    assert outcome.code == 0 and "continued: 2 of 4 cells" in outcome.out
    for path in rows[:2]:
        assert f"{path}: not a whole result of this cell; it is played again" in outcome.out
    assert (folder / ROWS).read_bytes() == table


@pytest.mark.parametrize(
    "change,named",
    [
        ("gamma=3", "gamma was 2, is 3"),
        ("policy=[spac]", "policy was [spac, lru_cpu], is [spac]"),
        ("hardware=standin", "hardware.name was rtx4090, is standin"),
        ("policy.spac.up=3", "policy.spac.up"),
    ],
)
def test_other_settings_are_refused_by_name(
    spac: Spac, dense_trace: Path, change: str, named: str
) -> None:
    assert spac(*words(dense_trace, *SMALL)).code == 0
    before = files(Path("outputs/compare/night"))
    key = change.partition("=")[0]
    kept = [word for word in words(dense_trace, *SMALL) if word.partition("=")[0] != key]
    error = spac(*kept, change).error
    assert "sweep night was begun with other settings" in error
    assert named in error or "overrides" in error
    assert files(Path("outputs/compare/night")) == before


@pytest.mark.parametrize("name", ["7", "latest", "'a/b'", "'..'", "'.hidden'"])
def test_names_that_cannot_be_folders_are_refused(spac: Spac, dense_trace: Path, name: str) -> None:
    assert "at least one letter" in spac(*words(dense_trace, *SMALL, name=name)).error


def test_a_file_of_settings_that_is_none_is_refused(spac: Spac, dense_trace: Path) -> None:
    assert spac(*words(dense_trace, *SMALL)).code == 0
    Path("outputs/compare/night/sweep.json").write_text("{")
    assert "cannot be read as the settings of a sweep" in spac(*words(dense_trace, *SMALL)).error


def test_a_sweep_under_way_is_refused(spac: Spac, dense_trace: Path) -> None:
    with locked(Path("outputs/compare/night")):
        assert "another process is at work on this" in spac(*words(dense_trace, *SMALL)).error


def test_differences_name_keys_over_all_jobs(tmp_path: Path) -> None:
    before = [{"machine": "a", "gamma": 2}, {"machine": "b", "gamma": 2}]
    assert difference(before, before[:1]) == "machine was a / b, is a"
    assert difference(before, before[::-1]) == "machine was a / b, is b / a"
    assert declare(tmp_path, before) == 1 and declare(tmp_path, before) == 2
    with pytest.raises(UserError, match="gamma was 2, is 2 / 3"):
        declare(tmp_path, [before[0], {"machine": "b", "gamma": 3}])


def test_two_equal_jobs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="two of its jobs have the same settings"):
        declare(tmp_path, [{"gamma": 2}, {"gamma": 2}])
