"""Comparison tables: on the terminal, as CSV and as Parquet."""

import io
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from experiments.ranking import TPS, with_relations
from policies.errors import UserError
from traces.atomic import write_atomically

TABLE_NAME = "table"
APPROXIMATE = "approximate"


def write_table(folder: Path, rows: pd.DataFrame, name: str = TABLE_NAME) -> list[Path]:
    """Write <name>.csv and <name>.parquet; each replaces its predecessor in one step."""
    sink = io.BytesIO()
    rows.to_parquet(sink, index=False, compression="zstd")
    files = {
        folder / f"{name}.csv": rows.to_csv(index=False, float_format="%.9g").encode(),
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
    return pd.read_parquet(path)


def comparison_tables(rows: pd.DataFrame) -> list[Group]:
    """For each setting: TPS of every policy by workload, its relations to best and oracle."""
    related = with_relations(rows)
    settings = related.groupby(["hardware", "model", "cache_ratio", "gamma"], sort=False)
    return [
        _setting_table(part, f"{hardware}, {model}, cache ratio {ratio:.0%}, gamma {gamma}")
        for (hardware, model, ratio, gamma), part in settings
    ]


def _setting_table(rows: pd.DataFrame, setting: str) -> Group:
    approximate = rows.groupby("workload", sort=False)[APPROXIMATE].any()
    title = f"tokens per second: {setting}"
    if approximate.any():
        title += "; approximate where marked ~ (text traces)"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    for workload, marked in approximate.items():
        table.add_column(f"~{workload}" if marked else str(workload), justify="right")
    for column in ("best", "oracle", "hits"):
        table.add_column(column, justify="right", no_wrap=True)
    summary = rows.groupby("policy", sort=False)[
        ["of_best", "of_oracle", "hit_rate_per_token"]
    ].mean()
    speeds = rows.pivot(index="policy", columns="workload", values=TPS)[list(approximate.index)]
    foreseeing = rows.groupby("policy")["clairvoyant"].first()
    order = summary["of_best"].sort_values(ascending=False).index
    causal = [policy for policy in order if not foreseeing[policy]]
    for policy in order:
        name = f"{policy}*" if foreseeing[policy] else str(policy)
        table.add_row(
            name,
            *(_three_digits(speed) for speed in speeds.loc[policy]),
            *(_share(value) for value in summary.loc[policy]),
            style="bold" if causal and policy == causal[0] else None,
        )
    note = (
        "best, oracle: share of the fastest policy's and the best clairvoyant schedule's speed, "
        "mean over workloads; hits: of active experts, counted by tokens"
        + ("; * sees the future, a bound that never wins" if foreseeing.any() else "")
    )
    return Group(Text(title, style="bold"), table, Text(note, style="dim"))


def _share(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.0%}"


def _three_digits(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"
