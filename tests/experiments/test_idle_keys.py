"""A key that changes nothing beside the others is refused, in every command."""

from pathlib import Path

import pytest

from experiments.commands import COMMANDS, Command
from experiments.configuration import split_words
from experiments.help_text import all_keys
from experiments.idle_keys import ON_STANDIN, served_kinds
from policies.errors import UserError
from tests.experiments.conftest import Spac

VALIDATE, BENCH, RUN = COMMANDS["validate"], COMMANDS["bench"], COMMANDS["run"]


def refusal(command: Command, *words: str) -> str:
    with pytest.raises(UserError) as found:
        split_words(command, words)
    assert " changes nothing here: " in str(found.value)
    return str(found.value)


@pytest.mark.parametrize(
    "word", ["rows=[1]", "repeats=3", "passes=2", "requests=2", "calibration_trace=code", "link=5",
             "link_latency=5", "distinct_layers=1", "model=standin", "hardware.vram_bytes=3"],
)  # fmt: skip
def test_keys_of_the_unpadded_clock_beside_the_padded_one(word: str) -> None:
    assert refusal(VALIDATE, "clock=padded", word).endswith("it counts with clock=unpadded")
    split_words(VALIDATE, ["clock=[padded,unpadded]", word])
    split_words(VALIDATE, [word])


@pytest.mark.parametrize("word", ["slow_motion=2", "padded_requests=2", "padded_model=olmoe"])
def test_keys_of_the_padded_clock_beside_the_unpadded_one(word: str) -> None:
    expected = f"{word} changes nothing here: it counts with clock=padded"
    assert refusal(VALIDATE, "clock=unpadded", word) == expected
    assert refusal(VALIDATE, "device=cuda", word) == expected, "a GPU has no padded clock"


def test_keys_of_other_sections_of_the_bench() -> None:
    assert "only=decisions" in refusal(BENCH, "only=solvers", "policy=spac")
    assert "only=engines or decisions" in refusal(BENCH, "only=[solvers,grid]", "dtype=int4")
    split_words(BENCH, ["only=[solvers,decisions]", "policy=spac"])
    assert not any(key.name == "context" for key in all_keys(BENCH)), "slots are a share there"


def test_help_names_the_parts_that_keys_are_for() -> None:
    served = {key.name: served_kinds(BENCH, key.meaning) for key in all_keys(BENCH)}
    assert served["hardware"] == ["engines", "decisions"] and served["only"] == []
    served = {key.name: served_kinds(VALIDATE, key.meaning) for key in all_keys(VALIDATE)}
    assert served["rows"] == ["unpadded"] and served["trace"] == served["clock"] == []


@pytest.mark.parametrize("name", ["validate", "calibrate"])
def test_keys_of_the_stand_in_beside_a_gpu(name: str) -> None:
    command = COMMANDS[name]
    assert {key.name for key in all_keys(command) if ON_STANDIN in key.meaning} == {
        "link", "link_latency",
    }  # fmt: skip
    assert "not with device=cuda:1" in refusal(command, "device=cuda:1", "link=5")


def test_a_run_says_what_does_not_go_together() -> None:
    assert "workload=, prompts= or mode=forced" in refusal(RUN, "requests=2")
    split_words(RUN, ["requests=2", "workload=code"])
    split_words(RUN, ["requests=2", "mode=forced"])
    assert "draft_path=ngram is not" in refusal(RUN, "draft_path=ngram", "draft=qwen3-0.6b")
    assert "draft_path=none is not" in refusal(RUN, "draft_path=none", "gamma=0", "draft.layers=3")
    for word in ("sampling.temperature=0.5", "sampling.seed=3"):
        assert "draws nothing" in refusal(RUN, "sampling.mode=greedy", word)
        assert "draws nothing" in refusal(COMMANDS["record"], "sampling.mode=greedy", word)
    with pytest.raises(UserError, match="out=a and outputs=b exclude each other"):
        split_words(RUN, ["out=a", "outputs=b"])


def test_studies_and_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    study, demo = COMMANDS["study"], COMMANDS["demo"]
    monkeypatch.delenv("SPAC_DATA", raising=False)
    assert "data=FOLDER" in refusal(study, "theory", "acceptance=0.5")
    assert "data=FOLDER" in refusal(study, "theory", "data=false", "text_requests=3")
    split_words(study, ["theory", "data=here", "acceptance=0.5"])
    assert "fits the values anew" in refusal(study, "paper", "refit=true", "fitted=mine.yaml")
    none = ("sweep_ratios=[]", "sweep_gammas=[]")
    assert "there are no sweeps" in refusal(demo, *none, "sweep_traces=1")
    with pytest.raises(UserError, match="exclude each other"):
        split_words(demo, ["record_workload=code", "record_prompts=mine.jsonl"])


PLAYED = ("model=trace", "draft=pair", "policy=lru_cpu", "cache_ratio=0.2")


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_seed_of_nothing(spac: Spac, dense_trace: Path, text_trace: Path, command: str) -> None:
    error = spac(command, f"trace={dense_trace}", *PLAYED, "seed=5").error
    assert "seed=5 changes nothing here: it is the key of acceptance" in error
    words = (f"trace={text_trace}", "acceptance=0.5", "seed=5", "gamma=99999999999")
    assert "seed" not in spac(command, *words, *PLAYED).error


def test_no_drafts_but_a_draft(spac: Spac) -> None:
    error = spac("run", "prompt=x", "gamma=0", "draft_path=some/where").error
    assert error == "draft_path=some/where changes nothing here: gamma=0 drafts nothing"


def test_slow_motion_of_times_that_are_not_paced(spac: Spac, dense_trace: Path) -> None:
    words = ("run", "mode=forced", f"trace={dense_trace}", "model=standin", "slow_motion=3")
    assert "only paced times are slowed" in spac(*words, "paced=false").error


def test_a_demo_with_text_traces(spac: Spac, dense_trace: Path, tmp_path: Path) -> None:
    """acceptance= is for the named traces: the fresh recording has drafts of its own."""
    words = ("demo", "policy=lru_cpu", "no_speculation=null", "requests=2")
    assert "leave them out" in spac(*words, "trace=[]", "acceptance=0.5").error
    assert not (tmp_path / "outputs").exists()
