"""`spac simulate`: metrics on the terminal, run log and picture on disk, grids refused."""

import json
from pathlib import Path

import pytest

from tests.experiments.conftest import Spac
from traces.metrics import metrics
from traces.runlog import read_runlog

SMALL = ("model=trace", "draft=pair", "cache_ratio=0.25", "gamma=2")


def test_metrics_are_those_of_the_run_log(spac: Spac, dense_trace: Path) -> None:
    outcome = spac("simulate", f"trace={dense_trace}", "policy=lru_cpu", *SMALL)
    assert outcome.code == 0, outcome.err
    folder = Path("outputs/simulate/latest")
    kept = json.loads((folder / "metrics.json").read_text())
    (directory,) = (folder / "runlogs").iterdir()
    assert kept["tokens_per_second"] == metrics(read_runlog(directory)).tokens_per_second
    assert f"{kept['tokens_per_second']:.3f}" in outcome.out
    assert (folder / "verify_pass_lanes.png").is_file()


def test_parameters_reach_the_policy(spac: Spac, dense_trace: Path) -> None:
    outcome = spac("simulate", f"trace={dense_trace}", "policy=spac", "policy.up=4", *SMALL)
    assert outcome.code == 0 and "spac up=4 on synthetic" in outcome.out
    (directory,) = Path("outputs/simulate/latest/runlogs").iterdir()
    assert read_runlog(directory).info.policy_params["estimator"]["up"] == 4


def test_both_engines_give_the_same_metrics(spac: Spac, dense_trace: Path) -> None:
    kept = []
    for engine in ("compiled", "reference"):
        outcome = spac(
            "simulate", f"trace={dense_trace}", "policy=ours", f"engine={engine}", *SMALL
        )
        assert outcome.code == 0 and f"engine: {engine} (as asked)" in outcome.out, outcome.err
        kept.append(json.loads(Path("outputs/simulate/latest/metrics.json").read_text()))
    assert kept[0] == kept[1]


@pytest.mark.parametrize(
    "words", [["gamma=[1,2]"], ["policy=[spac,lru_cpu]"], ["policy=spac", "policy.up=[1,2]"]]
)
def test_grids_belong_to_compare(spac: Spac, dense_trace: Path, words: list[str]) -> None:
    assert "compare plays grids" in spac("simulate", f"trace={dense_trace}", *words).error


def test_text_trace_is_marked(spac: Spac, text_trace: Path) -> None:
    outcome = spac("simulate", f"trace={text_trace}", "acceptance=[0.9,0.5]", *SMALL)
    assert outcome.code == 0, outcome.err
    assert "approximate: text trace" in outcome.out
