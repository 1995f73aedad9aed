"""Values that no machine and no text can have: one line, before anything is made."""

from pathlib import Path

import pytest

from experiments.commands import COMMANDS
from experiments.configuration import compose_config
from policies.errors import UserError
from tests.experiments.conftest import Spac

PLAYED = ("model=trace", "draft=pair", "policy=lru_cpu", "cache_ratio=0.2")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("model.layers=1000000000000000000", "ns for one operation, at most"),
        ("hardware.link.latency_ns=1000000000000000000", "latency_ns: 1000000000000000000"),
        ("hardware.cpu.expert_fixed_ns=9223372036854775807", "expert_fixed_ns: 92233"),
    ],
)
def test_times_beyond_64_bits(spac: Spac, dense_trace: Path, word: str, expected: str) -> None:
    assert expected in spac("simulate", f"trace={dense_trace}", *PLAYED, word).error


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ratios=[-1]"], "ratios=-1.0: must be above 0 and at most 1"),
        (["ratios=1e99"], "must be above 0 and at most 1"),
        (["ratios=[0]"], "ratios=0.0: must be above 0"),
        (["ratios=1e-9"], "no slot in a layer of 16 experts"),
        (["gammas=-1"], "gammas=-1: must be at least 0"),
        (["gammas=[2,5]"], "gammas=5: this dense trace goes up to 4"),
    ],
)
def test_statistics_that_a_trace_cannot_have(
    spac: Spac, dense_trace: Path, words: list[str], expected: str
) -> None:
    assert expected in spac("trace", "stats", str(dense_trace), *words).error


def test_windows_longer_than_the_texts(spac: Spac, text_trace: Path) -> None:
    for gamma in (30, 1_000_000_000):
        error = spac("trace", "stats", str(text_trace), f"gammas=[2,{gamma}]").error
        assert error == f"gammas={gamma}: no text of this trace has so long a window"


@pytest.mark.parametrize("key", ["layers", "requests", "tokens"])
@pytest.mark.parametrize("generator", ["zipf", "markov", "phases", "lru-adversary"])
def test_generated_texts_that_fit_no_memory(
    spac: Spac, tmp_path: Path, generator: str, key: str
) -> None:
    words = ("trace", "generate", generator, "out=made", f"{key}=1000000000000000000")
    assert "choices to draw" in spac(*words).error
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("text", ["${oc.env:HOME}", "${nothing}", "a ${b} \\${c} \\", "${", "$"])
def test_a_free_text_is_taken_as_it_stands(text: str) -> None:
    assert compose_config(COMMANDS["run"], [f"prompt={text}"])["prompt"] == text
    assert compose_config(COMMANDS["trace"], ["info", text])["path"] == text


def test_the_one_text_that_hydra_keeps_for_itself() -> None:
    with pytest.raises(UserError, match=r"prompt=\?\?\?: this alone is Hydra's sign"):
        compose_config(COMMANDS["run"], ["prompt=???"])


def test_more_training_processes_than_a_machine_has(spac: Spac, tmp_path: Path) -> None:
    error = spac("train-pair", "out=mine", "ranks=9999").error
    assert error.startswith("ranks=9999: each is a process of this machine; at most ")
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("words", [["workers=0"], ["workers=-1"], ["sweep=" + "a" * 300]])
def test_a_comparison_is_checked_before_its_folder(
    spac: Spac, dense_trace: Path, tmp_path: Path, words: list[str]
) -> None:
    assert spac("compare", f"trace={dense_trace}", *PLAYED, *words).error
    assert not (tmp_path / "outputs").exists()


def test_a_calibration_of_another_shape(spac: Spac, dense_trace: Path, tmp_path: Path) -> None:
    words = ("clock=unpadded", "policy=[lru_fetch,all_cpu]", "rows=[1,2,3]")
    error = spac("validate", f"trace={dense_trace}", *words).error
    assert "calibration_trace=prose has 8 layers of 64 experts" in error
    assert "has 3 of 16, top-2" in error
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gamma=0"], "gamma=0 must be at least 1 for a dense trace"),
        (["gamma=1000000000000000000"], "do not fit the model's 2048 positions"),
        (["sampling.mode=tarot"], "sampling.mode=tarot is unknown; use greedy, keyed, rejection"),
        (["sampling.mode=null"], "sampling.mode=null is unknown"),
        (["sampling.mode=rejection"], "cannot be recorded densely"),
        (["sampling.temperature=0"], "for no randomness use sampling.mode=greedy"),
        (["draft_path=none"], "kind=dense needs a draft"),
        (["kind=windowed", "draft_path=none"], "gamma=8 needs a draft"),
        (["kind=windowed", "gamma=-1"], "gamma=-1 needs a draft and must not be negative"),
    ],
)
def test_what_cannot_be_recorded_loads_no_model(
    spac: Spac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: str
) -> None:
    def loaded(*_: object) -> None:
        pytest.fail("a model was loaded")

    monkeypatch.setattr("experiments.record.open_pair", loaded)
    assert expected in spac("record", "requests=1", *words).error
    assert not (tmp_path / "outputs").exists()
