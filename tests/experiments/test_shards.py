"""Sweeps under -m: with every launcher the same merged table; continued; refused before any job."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.experiments.conftest import Spac
from tests.experiments.fake_slurm import fake_slurm

BASE = (
    "model=trace", "draft=pair", "pictures=false", "no_speculation=null", "workers=1",
    "cache_ratio=[0.2,0.4]", "policy=[spac,lru_cpu]", "gamma=2",
)  # fmt: skip
SWEPT = ("hardware=rtx4090,standin", "launch=late,early")
LAUNCHERS = {
    "joblib": ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    "submitit": ("hydra/launcher=submitit_local",),
}


def swept(spac: Spac, trace: Path, name: str, *more: str):
    return spac("compare", "-m", f"trace={trace}", *BASE, *SWEPT, f"sweep={name}", *more)


@pytest.fixture
def table(spac: Spac, dense_trace: Path) -> bytes:
    outcome = swept(spac, dense_trace, "basic")
    assert outcome.code == 0, outcome.err
    return Path("outputs/compare/basic/table.parquet").read_bytes()


def test_shards_are_merged_into_one_table(spac: Spac, table: bytes) -> None:
    rows = pd.read_parquet("outputs/compare/basic/table.parquet")
    assert len(rows) == 4 * 4
    assert list(rows.groupby("job", sort=False)[["hardware", "launch"]].first().itertuples()) == [
        (1, "rtx4090", "late"), (2, "rtx4090", "early"),
        (3, "standin", "late"), (4, "standin", "early"),
    ]  # fmt: skip
    for number in range(1, 5):
        shard = Path(f"outputs/compare/basic/shards/{number}")
        assert (shard / "winner.yaml").is_file()
        alone = pd.read_parquet(shard / "table.parquet")
        part = rows[rows["job"] == number].drop(columns=["job", "launch"])
        pd.testing.assert_frame_equal(part.reset_index(drop=True), alone)


@pytest.mark.parametrize("launcher", ["joblib", "submitit"])
def test_every_launcher_gives_the_same_bytes(
    spac: Spac, dense_trace: Path, table: bytes, launcher: str
) -> None:
    # In a process of its own, which takes the launcher's workers along when it ends.
    words = ("compare", "-m", f"trace={dense_trace}", *BASE, *SWEPT, f"sweep={launcher}")
    done = subprocess.run(
        [sys.executable, "-m", "experiments", *words, *LAUNCHERS[launcher]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert Path(f"outputs/compare/{launcher}/table.parquet").read_bytes() == table


SLURM = (
    "hydra/launcher=submitit_slurm", "hydra.launcher.partition=long", "hydra.launcher.mem_gb=6",
    "hydra.launcher.timeout_min=90", "hydra.launcher.cpus_per_task=3",
    "hydra.launcher.array_parallelism=2", "hydra.launcher.qos=night",
    "+hydra.launcher.additional_parameters.mail-type=END",
)  # fmt: skip


def test_slurm_gets_the_parameters_and_gives_the_same_bytes(
    spac: Spac, dense_trace: Path, table: bytes, tmp_path: Path
) -> None:
    """Through submitit's own Slurm executor; the commands of Slurm are stand-ins."""
    given = fake_slurm(tmp_path / "slurm")
    words = ("compare", "-m", f"trace={dense_trace}", *BASE, *SWEPT, "sweep=slurm", *SLURM)
    path = f"{tmp_path / 'slurm/bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "experiments", *words],
        capture_output=True, text=True, check=False, env=os.environ | given | {"PATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "slurm/sbatch.sh").read_text().splitlines()
    assert {line.removeprefix("#SBATCH --") for line in lines} >= {
        "partition=long", "mem=6GB", "time=90", "cpus-per-task=3", "qos=night", "nodes=1",
        "array=0-3%2", "mail-type=END",
    }  # fmt: skip
    assert Path("outputs/compare/slurm/table.parquet").read_bytes() == table


def test_without_slurm_is_one_line(
    spac: Spac, dense_trace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = swept(spac, dense_trace, "x", "hydra/launcher=submitit_slurm").error
    assert error.startswith("hydra/launcher=submitit_slurm: there is no srun here")
    assert not Path("outputs").exists()


def test_a_sweep_with_a_lost_shard_plays_that_shard_alone(
    spac: Spac, dense_trace: Path, table: bytes
) -> None:
    folder = Path("outputs/compare/basic")
    before = {path: path.stat().st_mtime_ns for path in (folder / "cells").glob("*.json")}
    lost = sorted(before)[::3]
    for path in lost:
        path.unlink()
    assert swept(spac, dense_trace, "basic").code == 0
    for path, changed in before.items():
        assert (path.stat().st_mtime_ns == changed) == (path not in lost)
    assert (folder / "table.parquet").read_bytes() == table


def test_other_jobs_are_refused_by_name(spac: Spac, dense_trace: Path, table: bytes) -> None:
    words = ("compare", "-m", f"trace={dense_trace}", *BASE, "sweep=basic")
    error = spac(*words, SWEPT[0], "launch=late,late").error
    assert "launch was late / early, is late" in error
    assert "hardware.name was rtx4090 / standin, is rtx4090" in spac(*words, SWEPT[1]).error


def test_what_is_impossible_is_refused_before_the_first_job(spac: Spac, dense_trace: Path) -> None:
    words = ("compare", "-m", f"trace={dense_trace}", *BASE[:-1], "hardware=rtx4090", "sweep=new")
    assert "gamma" in spac(*words, "gamma=2,40").error
    assert not Path("outputs/compare/new/cells").exists()


def test_a_launcher_that_is_not_there_is_one_line(spac: Spac, dense_trace: Path) -> None:
    error = swept(spac, dense_trace, "x", "hydra/launcher=slurmm").error
    assert error.startswith("hydra/launcher=slurmm: no such launcher is installed")
