"""What was asked for is done or refused before anything is made; nothing is left out in silence."""

from pathlib import Path

import pytest

from experiments.commands import COMMANDS, CONF
from experiments.help_text import all_keys
from experiments.idle_keys import served_kinds
from tests.experiments.conftest import Spac

PLAYED = ("model=trace", "draft=pair", "policy=lru_cpu", "cache_ratio=0.2")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A hardware profile of the user's own."""
    path = tmp_path / "mine.yaml"
    path.write_text((CONF / "hardware" / "rtx4090.yaml").read_text())
    return path


def test_a_wrong_key_of_a_profile_names_its_file(spac: Spac, dense_trace: Path, mine: Path) -> None:
    mine.write_text(mine.read_text().replace("vram_bytes", "vram_byte"))
    error = spac("simulate", f"trace={dense_trace}", *PLAYED, f"hardware={mine}").error
    assert f"hardware={mine}" in error and "'vram_byte'" in error


def test_a_number_beside_a_profile_is_not_lost(spac: Spac, dense_trace: Path, mine: Path) -> None:
    words = (f"trace={dense_trace}", *PLAYED, f"hardware={mine}", "hardware.link.latency_ns=5")
    assert "change the number in the file" in spac("simulate", *words).error
    assert "change the number in the file" in spac("simulate", "-m", *words).error


def test_a_comparison_says_what_it_plays_besides(spac: Spac, dense_trace: Path) -> None:
    words = (f"trace={dense_trace}", *PLAYED, "pictures=false", "workers=1", "bound=none")
    outcome = spac("compare", *words)
    assert outcome.code == 0, outcome.err
    assert "played without a draft as well: lru_cpu, ours (no_speculation=null" in outcome.out
    assert "without a draft as well" not in spac("compare", *words, "no_speculation=null").out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["demo", "record_requests=0"], "requests=0: "),
        (["demo", "record_tokens=1"], "max_new_tokens=1"),
        (["demo", "run_requests=99999"], "requests=99999: "),
        (["demo", "run_tokens=1"], "max_new_tokens=1: the first token is prefill"),
        (["demo", "workers=0"], "workers=0: must be at least 1"),
        (["demo", "bound=abc"], "bound=abc: there are none, fast, lp"),
        (["demo", "record_workload=abc"], "workload=abc is unknown"),
        (["demo", "record_draft=nowhere"], "draft_path=nowhere: no config.json there"),
        (["demo", "sweep=night"], "sweep=night: a demo is not continued"),
        (["demo", "policy=typo"], "unknown policy 'typo'"),
        (["demo", "gamma=9"], "gamma=9: this dense trace goes up to 4"),
        (["demo", "sweep_traces=0"], "sweep_traces=0: must be at least 1"),
        (["demo", "sweep_ratios=[2]"], "cache_ratio=2.0: must be above 0"),
        (["study", "formats", "requests=0"], "requests=0: "),
        (["study", "formats", "requests=-1"], "requests=-1: "),
        (["study", "formats", "requests=999"], "requests=999: "),
        (["study", "formats", "copy_to=file"], "copy_to=file: cannot be a folder"),
        (
            ["validate", "clock=padded", "policy=[lru_fetch,all_cpu]", "keep=file/below"],
            "keep=file/below: cannot be a folder",
        ),
        (
            ["bench", "only=decisions", "size=small", "policy=no.Such"],
            "policy no.Such: cannot import",
        ),
        (["bench", "only=decisions", "policy=1.5"], "policy 1.5: cannot import"),
        (["calibrate", "threads=2000"], "threads=2000: must be at most 1024"),
        (["record", "sampling.seed=-1"], "sampling.seed=-1: must be 0.."),
    ],
)
def test_refused_before_a_folder_is_made(
    spac: Spac, dense_trace: Path, tmp_path: Path, words: list[str], expected: str
) -> None:
    (tmp_path / "file").write_text("")
    if words[0] in ("demo", "validate", "calibrate"):
        words = [*words, f"trace={dense_trace}"]
    if words[0] == "demo" and not words[1].startswith("policy="):
        # What this trace can serve.
        words = [*words, "policy=lru_cpu", "no_speculation=null", "requests=2"]
    assert expected in spac(*words).error
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["errors=[0.5]"], "need 0 and at least one rate more"),
        (["errors=[0,2]"], "none above 1"),
        (["requests=1"], "the first request is warm-up"),
        (["requests=9"], "this trace has 3"),
        (["gamma=5"], "gamma=5: this dense trace goes up to 4"),
        (["cache_ratio=2"], "cache_ratio=2.0: must be above 0"),
        (["shuffles=0"], "shuffles=0: must be at least 1"),
        (["shuffles=1000000000000000000"], "must be at most 10000"),
        (["cache_ratio=null"], "cache_ratio=null: give a value"),
        (["context=3"], "context=3 changes nothing here: it counts with spac study paper or cells"),
    ],
)
def test_a_study_is_checked_before_its_first_hour(
    spac: Spac, dense_trace: Path, tmp_path: Path, words: list[str], expected: str
) -> None:
    given = (f"trace={dense_trace}", "data=false")
    plain = [word for word in ("requests=2", "gamma=2") if word[:5] != words[0][:5]]
    assert expected in spac("study", "theory", *given, *plain, *words).error
    assert not (tmp_path / "outputs").exists()


def test_the_help_of_a_study_names_the_studies_a_key_is_for() -> None:
    study = COMMANDS["study"]
    served = {key.name: served_kinds(study, key.meaning) for key in all_keys(study)}
    assert served["trace"] == ["theory", "formats"]
    assert served["data"] == ["theory", "cells"]
    assert served["outputs"] == []
    assert {name for name, kinds in served.items() if not kinds} == {"name", "copy_to", "outputs"}
