"""Reports are JSON for every reader: nothing undefined, nothing that only Python knows."""

import json
from pathlib import Path

import numpy as np

from traces.report_json import write_json


def no_constant(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def kept(folder: Path, data: object) -> object:
    write_json(folder / "report.json", data)
    return json.loads((folder / "report.json").read_text(), parse_constant=no_constant)


def test_what_is_undefined_is_null_at_any_depth(tmp_path: Path) -> None:
    data = {"a": float("nan"), "b": [1.5, {"c": float("inf"), "d": (np.float64("nan"), 2)}]}
    assert kept(tmp_path, data) == {"a": None, "b": [1.5, {"c": None, "d": [None, 2]}]}


def test_numbers_of_numpy_and_strange_values_do_not_lose_the_rest(tmp_path: Path) -> None:
    data = {
        1: np.int64(3), "flag": np.bool_(True), "row": np.array([1.0, -np.inf]),
        "path": Path("x"), "none": None, "yes": True,
    }  # fmt: skip
    assert kept(tmp_path, data) == {
        "1": 3, "flag": True, "row": [1.0, None], "path": "x", "none": None, "yes": True,
    }  # fmt: skip
