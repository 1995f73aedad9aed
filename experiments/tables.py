"""Comparison tables: on the terminal, as CSV and as Parquet."""

import io
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from experiments.possible import HIGH, SHARE_HIGH, SHARE_LOW, is_bounded, share_range, with_possible
from experiments.ranking import TPS, layers_note, with_relations
from policies.errors import UserError
from traces.atomic import write_atomically

TABLE_NAME = "table"
APPROXIMATE = "approximate"
ORACLE = "clairvoyant"
DECISIONS = "decision_times"
LIMIT = "upper bound"
MANY = 4  # workloads; with more, a terminal of 80 columns has no room for hit rates


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
    return pd.read_parquet(path, use_threads=False, pre_buffer=False)


def comparison_tables(rows: pd.DataFrame) -> list[RenderableType]:
    """For each setting: TPS of every policy by workload, its relations to best and oracle."""
    related = with_possible(with_relations(rows))
    settings = related.groupby(["hardware", "model", "cache_ratio", "gamma"], sort=False)
    shown: list[RenderableType] = [
        _setting_table(part, f"{hardware}, {model}, cache ratio {ratio:.0%}, gamma {gamma}")
        for (hardware, model, ratio, gamma), part in settings
    ]
    note = "best: share of the speed of the fastest policy, mean over workloads"
    if is_bounded(rows):
        note += (
            "; reached: share of what is possible, which lies between the fastest schedule "
            f"simulated and the {LIMIT} that none can exceed"
        )
    else:
        note += (
            "; oracle: share of the speed of the best clairvoyant policy; clairvoyants see the "
            "future but are greedy: no upper bound"
        )
    if rows["workload"].nunique() <= MANY:
        note += "; hits: of active experts, counted by tokens"
    if DECISIONS in rows:  # a table of an older version lacks it
        note += f"; times of decisions: {', '.join(rows[DECISIONS].unique())}"
    if rows["clairvoyant"].any():
        note += f"; * sees the future and never wins, {ORACLE}*: the best of these in each workload"
    return [*shown, Text(note, style="dim")]


def _setting_table(rows: pd.DataFrame, setting: str) -> Group:
    approximate = rows.groupby("workload", sort=False)[APPROXIMATE].any()
    many = len(approximate) > MANY
    title = f"tokens per second{layers_note(rows)}: {setting}"
    if approximate.any():
        title += "; approximate where marked ~ (text traces)"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("policy", no_wrap=True)
    for workload, marked in approximate.items():
        table.add_column(f"~{workload}" if marked else str(workload), justify="right")
    bounded = is_bounded(rows)
    columns = ["of_best", *((SHARE_LOW, SHARE_HIGH) if bounded else ("of_oracle",))]
    for column in ("best", "reached" if bounded else "oracle", *(() if many else ("hits",))):
        table.add_column(column, justify="right", no_wrap=True)
    speeds = rows.pivot(index="policy", columns="workload", values=TPS)[list(approximate.index)]
    foreseeing = rows.groupby("policy")["clairvoyant"].first()
    rest = [] if many else ["-"]
    if bounded:
        limits = rows.groupby("workload")[HIGH].first()[list(approximate.index)]
        table.add_row(LIMIT, *map(_three_digits, limits), "-", "-", *rest)
    if foreseeing.any():
        oracle = speeds[foreseeing].max()
        reached = "-" if bounded else _share(1.0)
        table.add_row(f"{ORACLE}*", *map(_three_digits, oracle), "-", reached, *rest)
    summary = rows.groupby("policy", sort=False)[[*columns, "hit_rate_per_token"]].mean()
    order = list(summary["of_best"].sort_values(ascending=False, kind="stable").index)
    first = next((policy for policy in order if not foreseeing[policy]), None)
    # Clairvoyants without speculation are in the files, and in the row of the best clairvoyant.
    hidden = set(rows.loc[rows["clairvoyant"] & ~rows["speculation"], "policy"])
    for policy in order:
        if policy not in hidden:
            table.add_row(
                f"{policy}*" if foreseeing[policy] else str(policy),
                *map(_three_digits, speeds.loc[policy]),
                *_relations(summary.loc[policy], bounded, many),
                style="bold" if policy == first else None,
            )
    return Group(Text(title, style="bold"), table)


def _relations(means: pd.Series, bounded: bool, many: bool) -> list[str]:
    """The columns right of the workloads."""
    if bounded:
        possible = share_range(float(means[SHARE_LOW]), float(means[SHARE_HIGH]))
    else:
        possible = _share(means["of_oracle"])
    return [
        _share(means["of_best"]),
        possible,
        *([] if many else [_share(means["hit_rate_per_token"])]),
    ]


def _share(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.0%}"


def _three_digits(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"
