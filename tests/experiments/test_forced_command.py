"""`spac run mode=forced`: a policy on any shape, routed by a trace; a measured profile by path."""

import json
from pathlib import Path

import pytest
import torch

from tests.experiments.conftest import Spac
from traces.runlog import read_runlog

torch.set_num_threads(1)


def forced(spac: Spac, trace: Path, *words: str):
    return spac("run", "mode=forced", f"trace={trace}", "gamma=2", "cache_ratio=0.3", *words)


def test_a_trace_is_followed_on_random_weights(spac: Spac, dense_trace: Path) -> None:
    outcome = forced(spac, dense_trace, "policy=lru_cpu", "paced=false")
    assert outcome.code == 0
    assert "routing as recorded; random weights" in outcome.out and "hit rate" in outcome.out
    folder = Path("outputs/run/latest")
    log = read_runlog(folder / "runlog")
    assert log.info.complete and log.info.trace == "synthetic" and log.info.slots == 14
    assert json.loads((folder / "metrics.json").read_text())["slow_motion"] == 1


def test_a_padded_run_takes_the_time_of_another_machine(spac: Spac, dense_trace: Path) -> None:
    outcome = forced(
        spac, dense_trace, "policy=lru_cpu", "requests=2", "model=qwen3-30b-a3b",
        "hardware=rtx4090", "slow_motion=2", "distinct_layers=1",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert "carried over to 48 x 128 (top-8)" in outcome.out
    assert "2 times slower than rtx4090" in outcome.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("prompt=hello",), "prompt=hello has no meaning with mode=forced"),
        (("experts=int8",), "experts=int8 has no meaning"),
        (("launch=soon",), "launch=soon"),
        (("model=mixtral-8x7b",), "no multiple of the trace's 16"),
        (("slow_motion=0",), "slow_motion=0"),
        (("policy=belady",), "only the simulator"),
        (("hardware=nowhere/profile.yaml",), "cannot read it"),
    ],
)
def test_what_cannot_be_forced_is_refused(
    words: tuple[str, ...], message: str, spac: Spac, dense_trace: Path
) -> None:
    assert message in forced(spac, dense_trace, *words).error


def test_a_trace_must_be_named(spac: Spac) -> None:
    assert "name one with trace=" in spac("run", "mode=forced").error


def test_keys_of_forcing_are_not_ignored_elsewhere(spac: Spac) -> None:
    assert "trace=code changes nothing without mode=forced" in spac("run", "trace=code").error
