"""Measured decision times: read strictly, charged alike by both engines, named in every table."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from experiments.commands import COMMANDS
from experiments.configuration import compose_config
from experiments.decision_file import (
    DecisionFile,
    PolicyTimes,
    as_yaml,
    choose_decision,
    read_decision_file,
)
from experiments.run_choice import choose_run
from policies.errors import UserError
from simulator.hardware import DecisionTimes
from tests.experiments.conftest import Spac
from tests.simulator.equal_runs import assert_equal_runs
from traces.runlog import RunLog, read_runlog

SPAC = PolicyTimes(31_000, 90_000, 7_000, 20_000, 3_000, 9_000)
TIMES = DecisionFile(
    "bench-machine", "Some CPU", 2, 0.1, {"numba": "1"}, "0123456789abcdef", {"layers": 48}, 100,
    {"spac": SPAC, "lru_cpu": PolicyTimes(11_000, 1, 2_000, 1, 1_000, 1)},
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "times.yaml"
    file.write_text(as_yaml(TIMES))
    return file


def changed(path: Path, **values: object) -> Path:
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | values))
    return path


def test_a_written_file_is_read_as_it_was(path: Path) -> None:
    assert read_decision_file(path) == TIMES
    assert choose_decision(str(path)) == TIMES
    assert choose_decision(None) is None


def test_the_median_is_charged() -> None:
    assert TIMES.of("spac") == DecisionTimes(layer_ns=31_000, leave_ns=7_000, draft_ns=3_000)


def test_a_policy_that_was_not_measured_is_refused() -> None:
    with pytest.raises(UserError, match="bench-machine: it has no times of policy belady; measure"):
        TIMES.of("belady")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"surplus": 1}, "unknown key 'surplus'"),
        ({"cores": "two"}, "cores: expected an integer"),
        ({"policies": [1]}, "policies: expected an object"),
        ({"policies": {"spac": {"layer_ns": 1}}}, "'layer_p99_ns' is missing"),
        ({"policies": {"spac": {**vars(SPAC), "layer_ns": -1}}}, "layer_ns: -1 makes no sense"),
        ({"policies": {"spac": {**vars(SPAC), "layer_ns": 1.5}}}, "layer_ns: expected an integer"),
    ],
)
def test_damaged_files_are_refused(
    path: Path, values: dict[str, object], expected: str
) -> None:  # fmt: skip
    with pytest.raises(UserError, match=expected) as refused:
        read_decision_file(changed(path, **values))
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("text", ["", "- 1\n", "name: [", "\x00"])
def test_foreign_files_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "foreign.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"foreign\.yaml: not"):
        read_decision_file(file)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UserError, match=r"unknown decision file 'nothing'.*There are: .*cores"):
        choose_decision("nothing")
    with pytest.raises(UserError, match=r"decision=folder/times.yaml: no such file"):
        choose_decision("folder/times.yaml")


def played(spac: Spac, trace: Path, *words: str) -> tuple[RunLog, str]:
    outcome = spac(
        "simulate", f"trace={trace}", "policy=spac", "cache_ratio=0.2", "gamma=2", *words
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    (log,) = Path("outputs/simulate/latest/runlogs").iterdir()
    return read_runlog(log), outcome.out


def test_both_engines_charge_the_file_alike(spac: Spac, dense_trace: Path, path: Path) -> None:
    one, said = played(spac, dense_trace, f"decision={path}", "engine=compiled")
    other, _ = played(spac, dense_trace, f"decision={path}", "engine=reference")
    assert_equal_runs(one, other)
    assert "decision times: measured on bench-machine" in said
    assert one.info.decision_source == "measured on bench-machine"
    verify = one.layers[one.layers["decision_ns"] > 0]  # prefill asks no policy
    assert set(verify["decision_ns"]) == {31_000}
    assert set(verify["leave_decision_ns"]) == {7_000}
    assert set(one.drafts["decision_ns"]) == {3_000}


def test_without_a_file_the_profile_is_charged_and_named(spac: Spac, dense_trace: Path) -> None:
    log, said = played(spac, dense_trace)
    assert "decision times: assumed by hardware profile rtx4090" in said
    assert log.info.decision_source == "assumed by hardware profile rtx4090"
    assert set(log.drafts["decision_ns"]) == {5_000}


def test_longer_decisions_make_a_slower_run(spac: Spac, dense_trace: Path, path: Path) -> None:
    slow = {"spac": {**vars(SPAC), "layer_ns": 10_000_000}}
    fast, _ = played(spac, dense_trace, f"decision={path}")
    late, _ = played(spac, dense_trace, f"decision={changed(path, policies=slow)}")
    assert late.passes["end_ns"].iloc[-1] > fast.passes["end_ns"].iloc[-1] + 100_000_000


def test_compare_charges_each_policy_its_own_and_says_so(
    spac: Spac, dense_trace: Path, path: Path
) -> None:
    words = (
        "compare", f"trace={dense_trace}", "policy=[spac,lru_cpu]", "cache_ratio=0.2", "gamma=2",
        "workers=1", "pictures=false", "no_speculation=lru_cpu", f"decision={path}",
    )  # fmt: skip
    outcome = spac(*words)
    assert outcome.code == 0, outcome.err
    rows = pd.read_csv("outputs/compare/latest/table.csv").set_index("policy")
    assert set(rows["decision_times"]) == {"measured on bench-machine"}
    assert rows.loc["spac", "mean_draft_decision_seconds"] == pytest.approx(3e-6)
    assert rows.loc["lru_cpu", "mean_draft_decision_seconds"] == pytest.approx(1e-6)
    assert "times of decisions: measured on bench-machine" in " ".join(outcome.out.split())
    inputs = json.loads(Path("outputs/compare/latest/run.json").read_text())["inputs"]
    assert len(inputs["decision bench-machine"]) == 64


def test_compare_refuses_before_it_plays(spac: Spac, dense_trace: Path, path: Path) -> None:
    outcome = spac(
        "compare", f"trace={dense_trace}", "policy=[spac,belady]", f"decision={path}",
        "cache_ratio=0.2", "gamma=2",
    )  # fmt: skip
    assert "it has no times of policy belady" in outcome.error
    assert not Path("outputs").exists()


def test_a_run_tells_its_policy_the_measured_times(path: Path) -> None:
    config = compose_config(COMMANDS["run"], [f"decision={path}", "policy=lru_cpu"])
    choice = choose_run(config)
    costs = choice.costs
    charged = (costs.decision_layer_ns, costs.decision_leave_ns, costs.decision_draft_ns)
    assert charged == (11_000, 2_000, 1_000)
    assert choice.decision_source == "measured on bench-machine"
    with pytest.raises(UserError, match="no times of policy all_cpu"):
        choose_run(compose_config(COMMANDS["run"], [f"decision={path}", "policy=all_cpu"]))


def test_a_run_without_a_file_names_its_profile() -> None:
    choice = choose_run(compose_config(COMMANDS["run"], ["policy=lru_cpu"]))
    assert choice.costs.decision_layer_ns == choice.hardware.decision.layer_ns
    assert choice.decision_source == "assumed by hardware profile standin"
