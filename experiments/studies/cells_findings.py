"""findings.md of `study cells`, in plain words, every number from the tables."""

import pandas as pd

from experiments.studies.cells_file import CellsFile
from experiments.studies.markdown import markdown_table

GOAL_RATIO, GOAL_GAP = 0.99, 0.5


def cells_findings(table: pd.DataFrame, order: pd.DataFrame, split: str, cells: CellsFile) -> str:
    """The whole file."""
    parts = [
        "# Is `ours` the fastest policy in every cell?",
        about_words(table, split, cells),
        "## Against the best published policy",
        ratio_words(table),
        "## How much of what is possible",
        gap_words(table),
        "## Without order",
        null_words(table),
        "## Rankings",
        ranking_words(order),
        markdown_table(ranking_shown(order)),
        "## Every cell",
        markdown_table(cells_shown(table)),
    ]
    return "\n\n".join(parts) + "\n"


def about_words(table: pd.DataFrame, split: str, cells: CellsFile) -> str:
    """What was played."""
    played = ", ".join(
        f"{one.trace or one.file} {one.requests - 1}" for one in cells.traces
    )  # the first request is warm-up
    half = "second" if split == "held_out" else "first"
    return (
        f"Written by `spac study cells split={split}`: {len(table)} cells, the {half} half of each "
        f"trace's requests, of which are counted (after one for warm-up): {played}. Names that "
        "begin with ~ are traces of accepted text only: rejected drafts are replaced by the text, "
        "their experts and tokens, and acceptance is an assumption, so their numbers are "
        f"approximate. {rivals_words(cells)} Simulated times of published hardware figures, not "
        "measured on a GPU."
    )


def rivals_words(cells: CellsFile) -> str:
    """Which policies took part: what is "best published" depends on it."""
    if cells.policies is None:
        return "All policies of the zoo took part, as far as a trace serves them."
    return f"Only these policies took part: {', '.join(cells.policies)}."


def ratio_words(table: pd.DataFrame) -> str:
    """The first goal."""
    short = table[table["ratio"] < GOAL_RATIO]
    worst = table.loc[table["ratio"].idxmin()]
    words = (
        f"The published policies draft as long as the cell's window says (or never, where that is "
        f"how they work); ours chooses. It reaches {GOAL_RATIO} times the fastest of them in "
        f"{len(table) - len(short)} of {len(table)} cells; median {table['ratio'].median():.3f}, "
        f"least {worst['ratio']:.3f} ({cell_name(worst)}, against {worst['published']}). "
    )
    tuned = table[table["ratio_tuned"] < GOAL_RATIO]
    least = table.loc[table["ratio_tuned"].idxmin()]
    return words + (
        "Much of that is the window. If the strongest published policies are also given the best "
        "window for each cell, known in hindsight, ours reaches "
        f"{GOAL_RATIO} times in {len(table) - len(tuned)} of {len(table)}; median "
        f"{table['ratio_tuned'].median():.3f}, least {least['ratio_tuned']:.3f} "
        f"({cell_name(least)}, against {least['tuned']} at gamma {least['tuned_gamma']})."
    )


def gap_words(table: pd.DataFrame) -> str:
    """The second goal. Where the clairvoyant loses there is no share to speak of."""
    defined = table["gap"].dropna()
    tuned = table["gap_tuned"].dropna()
    words = (
        "What is possible is taken from the fastest clairvoyant run at any window up to the "
        "cell's (`possible`): a schedule that really was simulated, no upper bound. In "
        f"{len(table) - len(defined)} cells it is no faster than the best published policy, and "
        "the share is left out. "
    )
    if len(defined) == 0:
        return words + "It is left out everywhere."
    words += (
        f"Of the distance in time per token between the best published policy and it, ours covers "
        f"{defined.median():.3f} in the median (goal {GOAL_GAP}), {defined.min():.2f} to "
        f"{defined.max():.2f}"
    )
    if len(tuned):
        words += f"; against published policies tuned in hindsight {tuned.median():.2f}"
    return words + "."


def null_words(table: pd.DataFrame) -> str:
    """The shuffled trace."""
    null, real = table["null_ratio"], table["ratio"]
    kept = table["speed_ours_null"] / table["speed_ours"]
    return (
        "On the same traces with all routing in random order popularity stays; order and the tie "
        f"to the tokens go. There ours runs at {kept.median():.3f} times its own speed (median, "
        f"{kept.min():.3f} to {kept.max():.3f}): the rest of its speed comes from order. Its ratio "
        f"to the best published policy played there is {null.median():.3f} in the median, "
        f"{null.min():.3f} to {null.max():.3f}, against {real.median():.3f} on the real order. So "
        "the lead itself does not come from order alone: popularity, prices and the choice of the "
        "window give a lead without it."
    )


def ranking_words(order: pd.DataFrame) -> str:
    """How to read the table."""
    named = order[~order["clairvoyant"]]
    free = named[named["equal_ratio"].isna()]
    words = (
        "Speed relative to ours, geometric mean over the cells in which a policy was played "
        "(policies that need predictions play on fewer traces). Equal ratio: all have the slots of "
        "the cell. Equal VRAM: who plays without a draft also has the draft's VRAM as slots. * "
        "sees the future."
    )
    if len(free):
        best = free.iloc[0]
        words += f" With equal VRAM `{best['policy']}` reaches {best['equal_vram']:.2f} times ours."
    return words


def ranking_shown(order: pd.DataFrame) -> pd.DataFrame:
    """Columns for the reader."""
    stars = order["clairvoyant"].map({True: "*", False: ""})
    ratio = order["equal_ratio"]
    return pd.DataFrame(
        {
            "policy": "`" + order["policy"] + "`" + stars,
            "cells": order["cells"],
            "equal ratio": [f"{one:.3f}" if one == one else "" for one in ratio],
            "equal VRAM": order["equal_vram"].map("{:.3f}".format),
            "worst cell": order["worst"].map("{:.3f}".format),
            "best cell": order["best"].map("{:.3f}".format),
        }
    )


def cells_shown(table: pd.DataFrame) -> pd.DataFrame:
    """Columns for the reader."""
    marks = table["approximate"].map({True: "~", False: ""})
    gaps = [f"{one:.2f}" if one == one else "-" for one in table["gap"]]
    tuned = table["tuned"] + " @" + table["tuned_gamma"].astype(str)
    published = table["published"] + " " + table["speed_published"].map("{:.1f}".format)
    possible = table["possible"] + " @" + table["possible_gamma"].astype(str)
    return pd.DataFrame(
        {
            "trace": marks + table["workload"],
            "slots": table["cache_ratio"].map("{:.0%}".format),
            "window": table["window"],
            "ours": table["speed_ours"].map("{:.1f}".format),
            "its mean gamma": table["mean_gamma_ours"].map("{:.1f}".format),
            "best published": published,
            "ratio": table["ratio"].map("{:.3f}".format),
            "tuned": tuned + " " + table["speed_tuned"].map("{:.1f}".format),
            "ratio tuned": table["ratio_tuned"].map("{:.3f}".format),
            "possible": possible + " " + table["speed_possible"].map("{:.1f}".format),
            "share": gaps,
            "null ratio": table["null_ratio"].map("{:.3f}".format),
        }
    )  # fmt: skip


def cell_name(cell: pd.Series) -> str:
    """A cell in a sentence."""
    return f"{cell['workload']}, {cell['cache_ratio']:.0%}, window {cell['window']}"
