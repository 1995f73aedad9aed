"""Kept cells: read back as written; cut off, changed or foreign files are never used."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from experiments.kept_cells import CellStore, key_of, run_kept

KEYS = [key_of("cell", number) for number in range(6)]


def squared(number: int) -> dict[str, object]:
    return {"square": np.int64(number * number), "third": number / 3, "none": None}


def kept_all(store: CellStore, cells: range) -> dict[int, dict]:
    return dict(run_kept(squared, cells, KEYS[: len(cells)], list(cells), 1, store))


def test_results_read_back_are_those_returned(tmp_path: Path) -> None:
    store = CellStore(tmp_path / "cells", 3)
    played = kept_all(store, range(6))
    kept, damaged = store.kept(KEYS)
    assert kept == played and not damaged
    assert kept[2] == {"square": 4, "third": 2 / 3, "none": None}
    assert json.loads(store.path(KEYS[0]).read_text())["attempt"] == 3


def test_a_result_that_is_not_finite_survives(tmp_path: Path) -> None:
    store = CellStore(tmp_path, 1)
    store.write(KEYS[0], {"rate": math.nan}, 0.0)
    kept, damaged = store.kept(KEYS)
    assert math.isnan(kept[0]["rate"]) and not damaged


@pytest.mark.parametrize("damage", ["cut", "empty", "value", "foreign", "no dict", "binary"])
def test_what_is_not_the_cells_result_is_never_used(tmp_path: Path, damage: str) -> None:
    store = CellStore(tmp_path, 1)
    kept_all(store, range(2))
    path, whole = store.path(KEYS[1]), store.path(KEYS[1]).read_bytes()
    damaged = {
        "cut": whole[:-20],
        "empty": b"",
        "value": whole.replace(b'"square": 1', b'"square": 9'),
        "foreign": store.path(KEYS[0]).read_bytes(),
        "no dict": b"[1, 2]\n",
        "binary": b"\xff\xfe\x00",
    }[damage]
    assert damaged != whole
    path.write_bytes(damaged)
    kept, found = store.kept(KEYS[:2])
    assert list(kept) == [0] and found == [path]


def test_without_a_store_nothing_is_written(tmp_path: Path) -> None:
    found = dict(run_kept(squared, range(3), KEYS[:3], [2, 0, 1], 1, None))
    assert len(found) == 3 and not list(tmp_path.iterdir())


def test_keys_tell_values_apart() -> None:
    assert len({key_of(1), key_of("1"), key_of(1, None), key_of((1,)), key_of(1.0)}) == 5
