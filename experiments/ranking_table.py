"""What a comparison's tables say, setting by setting, as text: speeds, ranks and shares."""

import pandas as pd

from experiments.possible import HIGH, SHARE_HIGH, SHARE_LOW, is_bounded, share_range, with_possible
from experiments.ranking import TPS, layers_note, with_relations
from experiments.text_table import TextRow, TextTable

APPROXIMATE = "approximate"
ORACLE = "clairvoyant"
DECISIONS = "decision_times"
LIMIT = "upper bound"


def ranking_tables(rows: pd.DataFrame, hits: bool) -> list[TextTable]:
    """For each setting: TPS of every policy by workload, its relations to best and oracle; with
    `hits` also the hit rate."""
    related = with_possible(with_relations(rows))
    settings = related.groupby(["hardware", "model", "cache_ratio", "gamma"], sort=False)
    return [
        _setting_table(part, f"{hardware}, {model}, cache ratio {ratio:.0%}, gamma {gamma}", hits)
        for (hardware, model, ratio, gamma), part in settings
    ]


def ranking_note(rows: pd.DataFrame, hits: bool) -> str:
    """What the columns of the tables mean."""
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
    if hits:
        note += "; hits: of active experts, counted by tokens"
    if DECISIONS in rows:  # a table of an older version lacks it
        note += f"; times of decisions: {', '.join(rows[DECISIONS].unique())}"
    if rows["clairvoyant"].any():
        note += f"; * sees the future and never wins, {ORACLE}*: the best of these in each workload"
    return note


def _setting_table(rows: pd.DataFrame, setting: str, hits: bool) -> TextTable:
    approximate = rows.groupby("workload", sort=False)[APPROXIMATE].any()
    title = f"tokens per second{layers_note(rows)}: {setting}"
    if approximate.any():
        title += "; approximate where marked ~ (text traces)"
    bounded = is_bounded(rows)
    workloads = [f"~{name}" if marked else str(name) for name, marked in approximate.items()]
    last = ("best", "reached" if bounded else "oracle", *(("hits",) if hits else ()))
    columns = ["of_best", *((SHARE_LOW, SHARE_HIGH) if bounded else ("of_oracle",))]
    speeds = rows.pivot(index="policy", columns="workload", values=TPS)[list(approximate.index)]
    foreseeing = rows.groupby("policy")["clairvoyant"].first()
    rest = ["-"] if hits else []
    content = []
    if bounded:
        limits = rows.groupby("workload")[HIGH].first()[list(approximate.index)]
        content.append(TextRow([LIMIT, *map(three_digits, limits), "-", "-", *rest]))
    if foreseeing.any():
        oracle = speeds[foreseeing].max()
        reached = "-" if bounded else share(1.0)
        content.append(TextRow([f"{ORACLE}*", *map(three_digits, oracle), "-", reached, *rest]))
    summary = rows.groupby("policy", sort=False)[[*columns, "hit_rate_per_token"]].mean()
    order = list(summary["of_best"].sort_values(ascending=False, kind="stable").index)
    first = next((policy for policy in order if not foreseeing[policy]), None)
    # Clairvoyants without speculation are in the files, and in the row of the best clairvoyant.
    hidden = set(rows.loc[rows["clairvoyant"] & ~rows["speculation"], "policy"])
    for policy in order:
        if policy not in hidden:
            name = f"{policy}*" if foreseeing[policy] else str(policy)
            relations = _relations(summary.loc[policy], bounded, hits)
            cells = [name, *map(three_digits, speeds.loc[policy]), *relations]
            content.append(TextRow(cells, policy == first))
    return TextTable(title, ["policy", *workloads, *last], content)


def _relations(means: pd.Series, bounded: bool, hits: bool) -> list[str]:
    """The columns right of the workloads."""
    if bounded:
        possible = share_range(float(means[SHARE_LOW]), float(means[SHARE_HIGH]))
    else:
        possible = share(means["of_oracle"])
    return [
        share(means["of_best"]),
        possible,
        *([share(means["hit_rate_per_token"])] if hits else []),
    ]


def share(value: float) -> str:
    """A share in per cent, "-" for none."""
    return "-" if pd.isna(value) else f"{value:.0%}"


def three_digits(value: float) -> str:
    """About three significant digits, "-" for none."""
    return "-" if pd.isna(value) else f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"
