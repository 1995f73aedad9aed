"""`spac validate` on a tiny model: both clocks, exact in logical time, failures shown in words."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from experiments import validate
from experiments.validation import UNPADDED, Logical, Validation
from experiments.validation_figure import validation_figure
from experiments.validation_report import verdicts
from tests.experiments.conftest import Spac
from traces.agreement import Agreement
from traces.report_json import write_json

torch.set_num_threads(1)
SMALL = (
    "model=trace", "gamma=2", "rows=[1,2,4]", "repeats=2", "passes=1", "runs=2", "requests=2",
    "slow_motion=1", "policy=[all_cpu,lru_cpu]",
)  # fmt: skip


def test_both_clocks_are_compared(spac: Spac, dense_trace: Path) -> None:
    outcome = spac(
        "validate", f"trace={dense_trace}", f"calibration_trace={dense_trace}", *SMALL,
        "keep=kept",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    for clock in ("padded", "unpadded"):
        assert f"{clock}: logical time: hits and bytes exact: met by all" in outcome.out
        assert f"{clock}: Kendall tau" in outcome.out
    assert "unpadded: error at most 15%" in outcome.out
    (told,) = [line for line in outcome.out.splitlines() if "not held out" in line]
    assert told.startswith("unpadded:") and told.endswith("too: trace synthetic, policy lru_cpu")
    folder = Path("outputs/validate/latest")
    rows = pd.read_parquet(folder / "table.parquet")
    assert rows.groupby("table")["policy"].apply(list).to_dict() == {
        "padded": ["all_cpu", "lru_cpu"], "unpadded": ["all_cpu", "lru_cpu"],
    }  # fmt: skip
    assert rows["logical_exact"].all() and (rows["measured_seconds"] > 0).all()
    # A padded clock can only be late: what it measures is at least what it was told to take.
    assert (rows[rows["table"] == "padded"]["error"] < 0.01).all()
    data = json.loads((folder / "validation.json").read_text())
    assert [one["name"] for one in data] == ["padded", "unpadded"]
    kept = {path.name for path in Path("kept").iterdir()}
    assert {"validation.json", "table.csv", "padded.png", "unpadded.png", "hardware.yaml"} <= kept


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("policy=spac",), "at least two"),
        (("clock=lunar",), "clock=lunar"),
        (("runs=1001",), "runs=1001: must be at most 1000"),
        (("padded_hardware=none_such",), "padded_hardware=none_such is unknown"),
        (("device=cuda", "clock=padded"), "only the stand-in"),
    ],
)
def test_what_cannot_be_validated_is_refused(
    words: tuple[str, ...], message: str, spac: Spac, dense_trace: Path
) -> None:
    keys = {word.partition("=")[0] for word in words}
    if "clock=padded" in words:  # then keys of the other clock are refused first
        keys |= {"model", "rows", "repeats", "passes", "requests"}
    small = [word for word in SMALL if word.partition("=")[0] not in keys]
    assert message in spac("validate", f"trace={dense_trace}", *small, *words).error


def test_what_was_measured_is_told_even_if_it_cannot_be_kept(
    spac: Spac, dense_trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, rows: pd.DataFrame) -> None:
        raise OSError(28, "No space left on device", str(folder))

    monkeypatch.setattr(validate, "write_table", full)
    small = ("gamma=2", "slow_motion=1", "policy=[all_cpu,lru_cpu]")
    outcome = spac(
        "validate", f"trace={dense_trace}", "clock=padded", *small, "runs=1",
    )  # fmt: skip
    assert outcome.code != 0 and "No space left" in outcome.err
    assert "padded: logical time: hits and bytes exact: met by all" in outcome.out
    data = json.loads(Path("outputs/validate/latest/validation.json").read_text())
    assert [row["policy"] for row in data[0]["policies"]] == ["all_cpu", "lru_cpu"]


def one(policy: str, predicted: float, measured: float, hits: float = 0.5) -> Agreement:
    return Agreement(
        policy, 2, predicted, measured, measured * 0.99, measured * 1.01, 0.5, hits, 100, 100,
        0.1, 0.1,
    )  # fmt: skip


def test_misses_are_said() -> None:
    logical = {
        "good": Logical((0.5, 0.5), (100, 100)),
        "bad": Logical((0.5, 0.4), (100, 100)),
    }
    result = Validation(
        UNPADDED, "note", [one("good", 1.0, 1.05), one("bad", 2.0, 1.0, 0.52)], logical, 0.15
    )
    text = "\n".join(verdicts(result))
    assert "error at most 15%: MISSED by bad" in text
    assert "live hits within 0.5 points: MISSED by bad" in text
    assert "live bytes within 1%: met by all" in text
    assert "logical time: hits and bytes exact: MISSED by bad" in text
    assert "Kendall tau -1.00; the pair farthest apart is ordered wrong" in text
    assert "bad" in validation_figure(result).get_suptitle()
    better = replace(result, agreements=[one("good", 1.0, 1.05), one("bad", 2.0, 2.1)])
    assert "all pairs that differ by 100.0% or more are ordered right" in verdicts(better)[1]


def test_undefined_figures_are_null_and_said(tmp_path: Path) -> None:
    exact = Logical((0.5, 0.5), (100, 100))
    # Where live runs had other passes than the prediction there is no error of single layers.
    some = [one("same", 1.0, 1.0), replace(one("other", 1.0, 1.0), median_layer_error=0.25)]
    result = Validation(UNPADDED, "note", some, {"same": exact, "other": exact}, 0.15)
    write_json(tmp_path / "validation.json", [result.as_data()])
    (kept,) = json.loads((tmp_path / "validation.json").read_text())
    assert [row["median_layer_error"] for row in kept["policies"]] == [None, 0.25]
    assert kept["kendall_tau"] is None
    assert "Kendall tau undefined" in verdicts(result)[1]
    assert "undefined" in validation_figure(result).get_suptitle()
