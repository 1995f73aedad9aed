"""What a user can get wrong: each one clear line, exit code 2, no traceback, nothing written."""

import shutil
from pathlib import Path

import pytest

from tests.experiments.conftest import Spac
from traces.reader import open_trace
from traces.rows import DECODE
from traces.schema import encode_part
from traces.strict_json import dump_json

PLAYERS = pytest.mark.parametrize("command", ["compare", "simulate"])


@PLAYERS
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["cach_ratio=0.2"], "unknown key 'cach_ratio', did you mean cache_ratio?"),
        (["policy=lru"], "unknown policy 'lru', did you mean lru_cpu? There are: adapmoe"),
        (["policy=spac", "policy.upp=1"], "unknown parameter of policy spac 'upp'"),
        (["policy=spac", "policy.signal=colour"], "unknown signal 'colour'"),
        (["gamma=5"], "gamma=5: this dense trace goes up to 4"),
        (["gamma=-1"], "gamma=-1: must be at least 0"),
        (["gamma=2.5"], "gamma=2.5: not a whole number"),
        (["cache_ratio=0"], "cache_ratio=0.0: must be above 0 and at most 1"),
        (["cache_ratio=2"], "cache_ratio=2.0: must be above 0 and at most 1"),
        (["cache_ratio=much"], "cache_ratio=much: not a number"),
        (["slots=49"], "slots=49: must be 1..48"),
        (["budget=ram"], "budget=ram: only vram is possible"),
        (["requests=1"], "requests=1: the first request is warm-up and never counted"),
        (["requests=4"], "requests=4: this trace has 3; ask for at most that many"),
        (["slots=10", "cache_ratio=0.2"], "cache_ratio=0.2 and slots=10 exclude each other"),
        (["budget=vram", "slots=9"], "slots=9 and budget=vram exclude each other"),
        (["budget=vram", "cache_ratio=0.2"], "cache_ratio=0.2 and budget=vram exclude each other"),
        (["gamma=2", "gamma=3"], "gamma is given twice, gamma=2 and gamma=3"),
        (["policy=spac", "policy.up=1", "policy.up=2"], "policy.up is given twice"),
        (
            ["policy=stream_active", "staging=0"],
            "policy stream_active streams misses",
        ),
        (["policy=fiddler", "staging=0"], "policy fiddler streams misses"),
        (["draft=some/checkpoint"], "a checkpoint directory is draft_path="),
        (["model=some/checkpoint"], "a checkpoint directory is target="),
        (["seed=x"], "seed=x: not a whole number"),
        (["overrides=3"], "expected keys with values"),
        (["requests=0"], "requests=0: must be at least 1"),
        (["acceptance=0.5"], "none of the traces is a text trace"),
        (["lanes=both"], "lanes=both: must be concurrent or serial"),
        (["dtype=int3"], "dtype 'int3' is unknown"),
        (["+foo=1"], "keys cannot be added or removed"),
        (["policy=spac", "policy.up=-1"], "Inertia.up=-1: must be at least 1"),
        (["policy=spac", "policy.up=1.5"], "must be a whole number"),
        (["policy=spac", "policy.levels=abc"], "must be a finite number"),
        (["policy=spac", "policy.levels=1000"], "at most 65"),
        (["policy=spac", "policy.calibrate=3"], "must be true or false"),
        (["policy=ours", "policy.decay=2"], "at most 1"),
        (["policy=ours", "policy.horizon=-1"], "must be at least 0"),
        (["policy=ours", "policy.margin=nan"], "must be a finite number"),
        (["outputs=/proc/nothing"], "No such file"),
        (["engine=fast"], "engine=fast: there are auto, reference, compiled"),
        (["hardware.link.bytes_per_second=0"], "bytes_per_second"),
    ],
)
def test_wrong_keys_and_values(
    spac: Spac, dense_trace: Path, command: str, words: list[str], expected: str
) -> None:
    outcome = spac(command, f"trace={dense_trace}", *words)
    assert expected in outcome.error


@PLAYERS
def test_a_path_with_spaces_needs_quotes(
    spac: Spac, dense_trace: Path, tmp_path: Path, command: str
) -> None:
    path = shutil.copytree(dense_trace, tmp_path / "my träce (2)")
    error = spac(command, f"trace={path}").error
    assert error.endswith(f"need quotes inside the shell's: \"trace='{path}'\"")
    words = ("policy=lru_cpu", "model=trace", "draft=pair", "cache_ratio=0.2")
    assert spac(command, f"trace='{path}'", *words).code == 0


def test_a_context_that_changes_nothing(spac: Spac, dense_trace: Path) -> None:
    words = (f"trace={dense_trace}", "policy=lru_cpu", "model=trace", "draft=pair")
    expected = "context=99 changes nothing here"
    assert expected in spac("simulate", *words, "context=99").error
    assert expected in spac("compare", *words, "context=99", "no_speculation=null").error
    # In a comparison the draft's KV is part of what a rival without a draft gets.
    one = spac("compare", *words, "context=64", "cache_ratio=0.2", "pictures=false", "workers=1")
    assert one.code == 0, one.err


def test_prompt_and_what_it_excludes(spac: Spac) -> None:
    for other in ("prompts=mine.jsonl", "workload=code", "requests=2"):
        assert "exclude each other" in spac("run", "prompt=hello", other).error
    assert "exclude each other" in spac("run", "winner=here", "policy=spac").error
    assert "action is given twice" in spac("trace", "info", "code", "action=check").error


def test_a_null_counts_as_not_given(spac: Spac, dense_trace: Path) -> None:
    words = ("policy=lru_cpu", "model=trace", "draft=pair", "slots=9", "cache_ratio=null")
    assert spac("simulate", f"trace={dense_trace}", *words).code == 0


def test_draft_names_costs_and_draft_path_a_checkpoint(spac: Spac) -> None:
    error = spac("record", "draft=some/checkpoint").error
    assert "unknown key 'draft', did you mean draft_path?" in error
    assert "a checkpoint directory is draft_path=" in spac("run", "draft=some/checkpoint").error


@PLAYERS
def test_a_text_trace_needs_acceptance(spac: Spac, text_trace: Path, command: str) -> None:
    assert "windows need acceptance=" in spac(command, f"trace={text_trace}").error


@PLAYERS
def test_truncated_part(spac: Spac, dense_trace: Path, tmp_path: Path, command: str) -> None:
    copy = shutil.copytree(dense_trace, tmp_path / "copy")
    part = copy / "part-00000.parquet"
    part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    assert "truncated or changed" in spac(command, f"trace={copy}").error
    part.unlink()
    assert "the part is missing" in spac(command, f"trace={copy}").error


@PLAYERS
def test_expert_out_of_range(spac: Spac, dense_trace: Path, tmp_path: Path, command: str) -> None:
    """A whole part with matching hash, whose experts do not fit the model."""
    copy = shutil.copytree(dense_trace, tmp_path / "copy")
    broken_trace(copy)
    assert "expert number 16 in a model of 16 experts" in spac(command, f"trace={copy}").error


def test_a_policy_that_needs_what_the_trace_lacks(spac: Spac, dense_trace: Path) -> None:
    outcome = spac("compare", f"trace={dense_trace}", "policy=spac", "policy.signal=mass")
    assert "policy spac needs router_mass" in outcome.error


def test_same_trace_twice(spac: Spac, dense_trace: Path) -> None:
    assert "given twice" in spac("compare", f"trace=[{dense_trace},{dense_trace}]").error


def test_nothing_was_written(spac: Spac, dense_trace: Path, tmp_path: Path) -> None:
    for words in (["cache_ratio=2"], ["gamma=9"], ["policy=none"]):
        assert spac("compare", f"trace={dense_trace}", *words).code == 2
    assert not (tmp_path / "outputs").exists()


def broken_trace(directory: Path) -> None:
    """Write an expert number past the model into the first part, hash and all."""
    from dataclasses import replace

    from traces.atomic import sha256_of

    trace = open_trace(directory)
    rows = trace.read_part(0)
    rows.experts[rows.phase == DECODE, 0, 0] = trace.manifest.model.experts
    wider = replace(trace.manifest, model=replace(trace.manifest.model, experts=17))
    data = encode_part(rows, wider)
    (directory / trace.manifest.parts[0].file).write_bytes(data)
    parts = (replace(trace.manifest.parts[0], sha256=sha256_of(data)),)
    manifest = replace(trace.manifest, parts=parts)
    (directory / "manifest.json").write_bytes(dump_json(manifest))
