"""A row per cell out of the rows of all runs: `ours` beside the best published policy, what is
possible, and the shuffled null.

Columns besides the cell: `speed_*` committed tokens per second; `published`: the fastest policy
that is neither ours nor clairvoyant, with its window as the cell gives it; `tuned`: the same with
the best of all windows up to the cell's, known in hindsight; `possible`: the fastest clairvoyant,
at any window up to the cell's. `ratio*` = speed of ours / that. `gap*` = (T_published - T_ours) /
(T_published - T_possible) with times per token, NaN where no clairvoyant is faster. `null_ratio`:
ours / best published among the nulls, on the shuffled trace.
"""

from typing import Any

import numpy as np
import pandas as pd

from experiments.studies.cell_jobs import CELL, NO_DRAFT, NULL, OURS, SHORT

TPS = "tokens_per_second"
KEYS = ["workload", "cache_ratio"]


def cell_table(rows: pd.DataFrame) -> pd.DataFrame:
    """`rows`: those of comparison.play with the column `part`."""
    cells = []
    for (workload, ratio), group in rows.groupby(KEYS, sort=False):
        for gamma in group.loc[group["part"] == CELL, "gamma"].unique():
            cells.append({"workload": workload, "cache_ratio": ratio} | _cell(group, int(gamma)))
    return pd.DataFrame(cells)


def _cell(group: pd.DataFrame, gamma: int) -> dict[str, Any]:
    here = group[(group["part"] == CELL) & (group["gamma"] == gamma)]
    shorter = group[(group["part"] == SHORT) & (group["gamma"] <= gamma)]
    reachable = pd.concat([here, shorter])
    ours = here[here["policy"] == OURS].iloc[0]
    published = _fastest(_published(here))
    tuned = _fastest(_published(reachable))
    possible = _fastest(reachable[reachable["clairvoyant"]])
    null = group[(group["part"] == NULL) & (group["gamma"] == gamma)]
    free = group[group["part"] == NO_DRAFT]
    return {
        "window": gamma + 1,
        "approximate": bool(ours["approximate"]),
        "speed_ours": ours[TPS],
        "mean_gamma_ours": ours["mean_gamma"],
        "published": published["policy"],
        "speed_published": published[TPS],
        "ratio": ours[TPS] / published[TPS],
        "tuned": tuned["policy"],
        "tuned_gamma": int(tuned["gamma"]),
        "speed_tuned": tuned[TPS],
        "ratio_tuned": ours[TPS] / tuned[TPS],
        "possible": possible["policy"],
        "possible_gamma": int(possible["gamma"]),
        "speed_possible": possible[TPS],
        "gap": gap_closed(published[TPS], ours[TPS], possible[TPS]),
        "gap_tuned": gap_closed(tuned[TPS], ours[TPS], possible[TPS]),
        "null_ratio": _speed(null, OURS) / _published(null)[TPS].max(),
        "speed_ours_null": _speed(null, OURS),
        "speed_ours_no_draft": _speed(free, OURS),
        "speed_published_no_draft": _published(free)[TPS].max(),
        "rank": int((_published(here)[TPS] > ours[TPS]).sum()) + 1,
        "policies": len(_published(here)) + 1,
    }


def gap_closed(published: float, ours: float, possible: float) -> float:
    """(T_published - T_ours) / (T_published - T_possible) from speeds; NaN where the clairvoyant is
    no faster than the published policy."""
    if not possible > published:
        return float("nan")
    return float((1 / published - 1 / ours) / (1 / published - 1 / possible))


def rankings(rows: pd.DataFrame) -> pd.DataFrame:
    """Speed of each policy relative to ours, geometric mean over the cells it was played in:
    `equal_ratio` with the slots of the cell, `equal_vram` with a draft's VRAM in slots where the
    policy plays without one."""
    cells = rows[rows["part"] == CELL]
    mine = cells[cells["policy"] == OURS].set_index([*KEYS, "gamma"])[TPS]
    lines = [_line(cells, mine, policy, policy) for policy in cells["policy"].unique()]
    free = rows[rows["part"] == NO_DRAFT]
    for policy in free["policy"].unique():
        one = free[free["policy"] == policy].drop(columns="gamma")
        spread = one.merge(cells[[*KEYS, "gamma"]].drop_duplicates(), on=KEYS)
        lines.append(_line(spread, mine, policy, f"no draft: {policy}"))
    table = pd.DataFrame(lines)
    return table.sort_values("equal_vram", ascending=False, ignore_index=True)


def _line(rows: pd.DataFrame, mine: pd.Series, policy: str, label: str) -> dict[str, Any]:
    own = rows[rows["policy"] == policy].set_index([*KEYS, "gamma"])
    relative = own[TPS] / mine.reindex(own.index)
    mean = float(np.exp(np.log(relative).mean()))
    free = label != policy
    return {
        "policy": label,
        "clairvoyant": bool(own["clairvoyant"].iloc[0]),
        "cells": len(relative),
        "equal_ratio": float("nan") if free else mean,
        "equal_vram": mean,
        "worst": float(relative.min()),
        "best": float(relative.max()),
    }


def _published(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[~rows["clairvoyant"] & (rows["policy"] != OURS)]


def _fastest(rows: pd.DataFrame) -> pd.Series:
    return rows.loc[rows[TPS].idxmax()]


def _speed(rows: pd.DataFrame, policy: str) -> float:
    found = rows.loc[rows["policy"] == policy, TPS]
    return float(found.iloc[0]) if len(found) else float("nan")
