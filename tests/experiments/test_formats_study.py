"""`spac study formats` in small: its files, and findings whose numbers are the table's."""

from pathlib import Path

import pandas as pd

from tests.experiments.conftest import Spac


def test_formats_in_small(spac: Spac) -> None:
    outcome = spac("study", "formats", "trace=[code]", "requests=1", "copy_to=kept")
    assert outcome.code == 0, outcome.err
    folder = Path("outputs/study/latest")
    assert {path.name for path in folder.iterdir()} == {
        "run.json", "table.csv", "table.parquet", "formats.png", "findings.md",
    }  # fmt: skip
    table = pd.read_parquet(folder / "table.parquet")
    assert table["experts"].tolist() == ["int8", "same", "int8"]
    findings = Path("kept/findings.md").read_text()
    assert f"{table['logit_error'].iloc[0]:.4f} on average" in findings
    assert f"reads {table['rows'].iloc[0]:,} rows" in findings


def test_an_unknown_workload_is_refused(spac: Spac) -> None:
    outcome = spac("study", "formats", "trace=[novels]")
    assert outcome.code == 2
    assert "workload=novels is unknown" in outcome.err
