"""Tables: what is written can be read; the terminal shows every policy and marks approximations."""

import io
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from experiments.tables import comparison_tables, read_table, write_table
from tests.experiments.comparison_rows import comparison_rows


def shown(rows: pd.DataFrame, width: int = 120) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(*comparison_tables(rows), sep="\n")
    return console.export_text()


def test_csv_and_parquet_hold_the_same(tmp_path: Path) -> None:
    rows = comparison_rows((0.1, 0.25))
    files = write_table(tmp_path, rows)
    assert [file.name for file in files] == ["table.csv", "table.parquet"]
    pd.testing.assert_frame_equal(read_table(tmp_path), rows)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "table.csv"), rows, check_dtype=False)


def test_one_table_per_setting_with_all_policies() -> None:
    text = shown(comparison_rows((0.1, 0.25)))
    assert "cache ratio 10%" in text and "cache ratio 25%" in text
    for name in ("all_cpu", "lru_cpu", "spac", "belady*", "window_oracle*"):
        assert text.count(f" {name} ") == 2
    assert text.count(" clairvoyant* ") == 2
    assert "* sees the future" in " ".join(text.split())


@pytest.mark.parametrize("approximate", [False, True])
def test_approximate_traces_are_marked(approximate: bool) -> None:
    text = shown(comparison_rows(approximate=approximate))
    assert ("approximate" in text) == approximate
    assert ("~code" in text) == approximate


def test_eighty_columns_are_enough_for_policy_names() -> None:
    assert " window_oracle* " in shown(comparison_rows(), width=80)


def test_eighty_columns_are_enough_for_six_workloads() -> None:
    names = ("fresh", "code", "maths", "dictionary", "manuals", "prose")
    text = shown(comparison_rows(workloads=dict.fromkeys(names, 10.0)), width=80)
    assert all(f" {name} " in text for name in names) and "…" not in text


def test_the_share_of_layers_is_said() -> None:
    assert "tokens per second, 8 of 48 layers: rtx4090" in shown(comparison_rows())
