"""What cannot be is refused before an output folder is made, whatever the command."""

from pathlib import Path

import pytest

from tests.experiments.conftest import Spac

RUN_ONLY = pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["max_new_tokens=100000"], "100004 more do not fit the model's 2048 positions"),
        (["slots=0"], "slots=0: must be 1.."),
        (["gamma=1000000"], "gamma=1000000: the model reads 2048 tokens in all"),
        (["context=3"], "context=3: the longest prompt"),
        (["context=999999"], "the model reads at most 2048 tokens"),
        (["staging=1000000000"], "staging=1000000000: must be 0.."),
        (["policy=stream_active", "staging=0"], "policy stream_active streams misses"),
        (["policy=belady"], "only the simulator"),
        (["sampling=null"], "sampling=null: give its keys"),
        (["sampling.mode=x"], "sampling.mode=x is unknown"),
        (["sampling.temperature=nan"], "must be above 0"),
        (["paced=maybe"], "paced=maybe: must be true or false"),
        (["proofs=3"], "proofs=3: must be true or false"),
        (["outputs=null"], "outputs=null: give a value"),
        (["hardware=null"], "hardware=null: name one of"),
        (["model@x=3"], "model@x=3: name one of deepseek"),
    ],
)


@RUN_ONLY
def test_a_run_that_cannot_be_is_refused_before_its_folder(
    spac: Spac, tmp_path: Path, words: list[str], expected: str
) -> None:
    assert expected in spac("run", "prompt=x", *words).error
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["requests=0"], "requests=0: must be at least 1"),
        (["requests=99"], "requests=99: this trace has 3"),
        (["distinct_layers=0"], "distinct_layers=0: must be 1..3"),
        (["distinct_layers=99"], "distinct_layers=99: must be 1..3"),
        (["slow_motion=100000000000000"], "must be at most 100000"),
        (["slots=9999"], "slots=9999: must be 1..48"),
        (["gamma=9"], "gamma=9: this dense trace goes up to 4"),
        (["sampling={mode: greedy}"], "has no meaning with mode=forced"),
        (["sampling.seed=1"], "has no meaning with mode=forced"),
        (["policy=stream_active", "staging=0"], "streams misses"),
        (["decision=nowhere"], "unknown decision file 'nowhere'"),
    ],
)
def test_a_forced_run_that_cannot_be_is_refused_before_its_folder(
    spac: Spac, dense_trace: Path, tmp_path: Path, words: list[str], expected: str
) -> None:
    assert expected in spac("run", "mode=forced", f"trace={dense_trace}", *words).error
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize("command", ["calibrate", "validate"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["threads=0"], "threads=0: must be at least 1"),
        (["rows=[]"], "rows=[]: name at least one"),
        (["rows=[0]"], "rows=0: must be at least 1"),
        (["repeats=0"], "repeats=0: must be at least 1"),
        (["passes=0"], "passes=0: must be at least 1"),
        (["requests=0"], "requests=0: must be at least 1"),
    ],
)
def test_a_measurement_of_nothing(
    spac: Spac, tmp_path: Path, command: str, words: list[str], expected: str
) -> None:
    assert expected in spac(command, *words).error
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["clock=[]"], "clock=[]: name at least one: padded | unpadded"),
        (["calibration_trace=nowhere"], "unknown trace 'nowhere'"),
        (["padded_requests=0"], "requests=0: must be at least 1"),
        (["policy=[spac,belady]"], "only the simulator"),
    ],
)
def test_a_validation_that_cannot_be(
    spac: Spac, tmp_path: Path, words: list[str], expected: str
) -> None:
    assert expected in spac("validate", *words).error
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["workload=null"], "workload=null: give a value"),
        (["gamma=x"], "gamma=x: not a whole number"),
        (["max_new_tokens=1.5"], "max_new_tokens=1.5: not a whole number"),
        (["requests=x"], "requests=x: not a whole number"),
        (["threads=0"], "threads=0: must be at least 1"),
        (["next_layer=maybe"], "next_layer=maybe: must be true or false"),
        (["sampling=null"], "sampling=null: give its keys"),
    ],
)
def test_a_recording_that_cannot_be(
    spac: Spac, tmp_path: Path, words: list[str], expected: str
) -> None:
    assert expected in spac("record", *words).error
    assert not (tmp_path / "outputs").exists()


def test_a_recording_larger_than_the_memory(spac: Spac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.record.available_host_bytes", lambda: 2**20)
    error = spac("record").error
    assert "target" in error and "draft" in error and "1.00 MiB of host memory" in error
    assert "recording keeps whole models in memory" in error


@pytest.mark.parametrize("name", ["..x", "no.Such", "os.path", "json.JSONDecoder", "broken.Policy"])
def test_what_is_no_policy(spac: Spac, tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.py").write_text("def (")
    assert f"policy {name}: " in spac("policies", f"check={name}").error


@pytest.mark.parametrize("bytes_per_second", ["1e-300", "0.001"])
def test_rates_that_no_clock_can_hold(spac: Spac, dense_trace: Path, bytes_per_second: str) -> None:
    rate = f"hardware.link.bytes_per_second={bytes_per_second}"
    words = ("policy=lru_cpu", "model=trace", "draft=pair", rate)
    assert "is too low" in spac("simulate", f"trace={dense_trace}", *words).error


def test_a_window_of_any_length_is_refused_at_once(spac: Spac, dense_trace: Path) -> None:
    words = ("policy=lru_cpu", f"gamma={10**18}")
    assert "goes up to 4" in spac("simulate", f"trace={dense_trace}", *words).error
