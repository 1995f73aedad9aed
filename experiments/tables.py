"""Comparison tables: on the terminal, as CSV and as Parquet."""

import io
from pathlib import Path

import pandas as pd
from rich.console import RenderableType
from rich.text import Text

from experiments.cell import HITS_BY_LAYER
from experiments.fitted_table import FittedTable
from experiments.ranking_table import ranking_note, ranking_tables
from policies.errors import UserError
from traces.atomic import write_atomically

TABLE_NAME = "table"
SPARE = ("hits", "best")  # columns that a narrow terminal can do without
MANY = 4  # workloads; with more, a terminal of 80 columns has no room for hit rates


def write_table(folder: Path, rows: pd.DataFrame, name: str = TABLE_NAME) -> list[Path]:
    """Write <name>.csv and <name>.parquet; each replaces its predecessor in one step."""
    sink = io.BytesIO()
    rows.to_parquet(sink, index=False, compression="zstd")
    flat = rows.drop(columns=HITS_BY_LAYER, errors="ignore")
    files = {
        folder / f"{name}.csv": flat.to_csv(index=False, float_format="%.9g").encode(),
        folder / f"{name}.parquet": sink.getvalue(),
    }
    for path, data in files.items():
        write_atomically(path, data)
    return list(files)


def read_table(folder: Path, name: str = TABLE_NAME) -> pd.DataFrame:
    """The rows that write_table wrote; UserError if there are none."""
    path = folder / f"{name}.parquet"
    if not path.is_file():
        raise UserError(f"{folder}: no finished row, it has no {path.name}")
    return pd.read_parquet(path, use_threads=False, pre_buffer=False)


def comparison_tables(rows: pd.DataFrame) -> list[RenderableType]:
    """For each setting: TPS of every policy by workload, its relations to best and oracle."""
    hits = rows["workload"].nunique() <= MANY
    shown: list[RenderableType] = [
        FittedTable(one, spare=SPARE) for one in ranking_tables(rows, hits)
    ]
    return [*shown, Text(ranking_note(rows, hits), style="dim")]
