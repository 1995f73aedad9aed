"""`spac trace`: looking at traces and importing one, and every damage as one line."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.conftest import Spac
from traces.manifest import MANIFEST_NAME


@pytest.fixture
def broken(dense_trace: Path, tmp_path: Path) -> Path:
    """A copy of the dense trace to damage."""
    copy = tmp_path / "broken"
    shutil.copytree(dense_trace, copy)
    return copy


def test_info(spac: Spac, dense_trace: Path) -> None:
    shown = spac("trace", "info", str(dense_trace))
    assert shown.code == 0
    assert "3 layers x 16 experts, top-2" in shown.out and "dense" in shown.out


def test_check(spac: Spac, dense_trace: Path) -> None:
    shown = spac("trace", "check", str(dense_trace))
    assert shown.code == 0 and "no problem found" in shown.out


def test_stats_of_a_dense_trace(spac: Spac, dense_trace: Path) -> None:
    shown = spac("trace", "stats", str(dense_trace), "gammas=[1,2]", "ratios=0.25")
    assert shown.code == 0
    assert "tokens per pass" in shown.out and "25%" in shown.out
    assert "approximate" not in shown.out


def test_text_traces_are_called_approximate(spac: Spac, text_trace: Path) -> None:
    assert "approximate" in spac("trace", "info", str(text_trace)).out
    assert "approximate" in spac("trace", "stats", str(text_trace), "acceptance=0.7").out


def test_truncated_part(spac: Spac, broken: Path) -> None:
    part = broken / "part-00000.parquet"
    part.write_bytes(part.read_bytes()[:-100])
    for action in ("check", "stats"):
        assert "truncated or changed" in spac("trace", action, str(broken)).error


def test_missing_manifest_and_missing_folder(spac: Spac, broken: Path) -> None:
    (broken / MANIFEST_NAME).unlink()
    assert "not a trace" in spac("trace", "info", str(broken)).error
    assert "no such trace directory" in spac("trace", "info", "no/where").error
    assert "unknown trace 'nowhere'" in spac("trace", "info", "nowhere").error


def test_import(spac: Spac, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows = 12
    experts = np.stack([generator.permutation(8)[:2] for _ in range(rows * 3)]).reshape(rows, 3, 2)
    np.savez(
        tmp_path / "routing.npz",
        experts=experts.astype(np.uint16),
        seq=np.repeat([0, 1], 6).astype(np.int32),
        pos=np.tile(np.arange(6), 2).astype(np.int32),
        token=np.arange(rows, dtype=np.int32),
        meta=json.dumps({"model": "some", "experts": 8}),
    )
    source = str(tmp_path / "routing.npz")
    assert "needs out=" in spac("trace", "import", source).error
    made = spac("trace", "import", source, "out=made", "expert_bytes=4096")
    assert made.code == 0, made.err
    assert "text (approximate)" in made.out
    assert "never overwritten" in spac(
        "trace", "import", source, "out=made", "expert_bytes=4096"
    ).error  # fmt: skip


def test_a_path_with_an_equals_sign(spac: Spac, dense_trace: Path, tmp_path: Path) -> None:
    odd = tmp_path / "a=b"
    shutil.copytree(dense_trace, odd)
    assert spac("trace", "info", "a=b").code == 0
