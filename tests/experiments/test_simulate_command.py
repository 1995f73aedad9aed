"""`spac simulate`: metrics on the terminal, run log and picture on disk, grids refused."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from experiments.metric_words import GROUPS
from experiments.metrics_table import shown
from tests.experiments.conftest import Spac
from traces.metrics import Metrics, metrics
from traces.runlog import read_runlog
from traces.size_text import size_text

SMALL = ("model=trace", "draft=pair", "cache_ratio=0.25", "gamma=2")


def test_metrics_are_those_of_the_run_log(spac: Spac, dense_trace: Path) -> None:
    outcome = spac("simulate", f"trace={dense_trace}", "policy=lru_cpu", *SMALL)
    assert outcome.code == 0, outcome.err
    folder = Path("outputs/simulate/latest")
    kept = json.loads((folder / "metrics.json").read_text())
    (directory,) = (folder / "runlogs").iterdir()
    assert kept["tokens_per_second"] == metrics(read_runlog(directory)).tokens_per_second
    assert f" {shown('tokens_per_second', kept['tokens_per_second'])} " in outcome.out
    assert f" {size_text(kept['bytes_copied'])} " in outcome.out
    assert "waits for a copy or for the CPU's experts" in outcome.out
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


def test_every_figure_has_a_name_and_a_meaning() -> None:
    named = [name for group in GROUPS for name in group]
    assert {*named, "approximate"} == {field.name for field in fields(Metrics)}
    assert len(named) == len(set(named))
    assert all(len(meaning) <= 44 for group in GROUPS for _, meaning in group.values())


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("bytes_copied", 2_670_723_072, "2.49 GiB"),
        ("bytes_demand", 0, "0.00 MiB"),
        ("decode_seconds", 0.447964, "448 ms"),
        ("decode_seconds", 12.3456, "12.35 s"),
        ("mean_layer_decision_seconds", 0.0000251, "0.0251 ms"),
        ("share_gpu", 0.498, "49.8%"),
        ("committed_tokens", 12345, "12,345"),
        ("mean_gamma", float("nan"), "-"),
        ("tokens_per_second", 1234.56, "1,234.6"),
    ],
)
def test_figures_have_units(name: str, value: float, text: str) -> None:
    assert shown(name, value) == text
