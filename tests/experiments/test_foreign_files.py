"""Files that are damaged or somebody else's: one line that names them."""

from pathlib import Path

import pytest

from tests.experiments.conftest import Spac


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b"[]", b""])
def test_a_damaged_run_file(spac: Spac, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "run.json").write_bytes(content)
    assert "run.json" in spac("report", "made").error


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a: " + b"9" * 5000, b"[" * 2000])
def test_files_that_are_none_of_ours(
    spac: Spac, dense_trace: Path, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "foreign.yaml").write_bytes(content)
    for key in ("hardware", "decision"):
        words = ("policy=lru_cpu", f"{key}=./foreign.yaml")
        assert "foreign.yaml" in spac("simulate", f"trace={dense_trace}", *words).error
    assert "foreign.yaml" in spac("run", "prompt=x", "winner=foreign.yaml").error


def test_prompts_that_are_no_text(spac: Spac, tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_bytes(b"\xff\xfe")
    assert "not text in UTF-8" in spac("run", "prompts=mine.jsonl").error
