"""Who is best: relations between the rows of a comparison. Pure functions of its table."""

from dataclasses import dataclass

import pandas as pd

from experiments.cell import CELL, TPS
from experiments.possible import SHARE_LOW, is_bounded, with_possible
from policies.errors import UserError

NO_SPECULATION = "no_speculation"
PROVISIONAL = "Provisional, the comparison was interrupted: "
WITHOUT_DRAFT = "which drafts nothing and gives the draft's VRAM to slots,"


@dataclass(frozen=True)
class Standing:
    """The outcome of a comparison. `of_best`, `of_oracle`: mean over cells of the winner's TPS
    relative to the best policy and to the best clairvoyant one (None if there was none);
    `of_possible`: at least this share of what is possible (None without bounds).
    `partial`: the comparison was interrupted, so that shares of a best one would mean nothing.

    `lead`: how much faster than the runner-up in the mean, 0.1 = 10 %; None without a rival.
    """

    winner: str
    of_best: float
    of_oracle: float | None
    runner_up: str | None
    lead: float | None
    cells: int
    approximate: bool
    partial: bool = False
    of_possible: float | None = None


def layers_note(rows: pd.DataFrame) -> str:
    """ ", 8 of 48 layers" where small traces stand for a big model, else nothing."""
    pairs = rows[["trace_layers", "model_layers"]].drop_duplicates()
    smaller = pairs[pairs["trace_layers"] != pairs["model_layers"]]
    notes = [f"{few} of {all_} layers" for few, all_ in smaller.itertuples(index=False)]
    return f", {' or '.join(notes)}" if notes else ""


def with_relations(rows: pd.DataFrame) -> pd.DataFrame:
    """`rows` with `of_best`, `of_oracle`: TPS over the best policy and clairvoyant of the cell."""
    keys = [rows[key] for key in CELL]
    causal = rows[TPS].where(~rows["clairvoyant"]).groupby(keys).transform("max")
    oracle = rows[TPS].where(rows["clairvoyant"]).groupby(keys).transform("max")
    return rows.assign(of_best=rows[TPS] / causal, of_oracle=rows[TPS] / oracle)


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """Per policy: cells, mean of_best, of_oracle and TPS; best first."""
    # A policy whose window is always 0 has a draft and does not use it.
    drafts = rows["speculation"] & (rows["mean_gamma"] > 0)
    grouped = with_relations(rows.assign(drafts=drafts)).groupby("policy", sort=False)
    table = grouped.agg(
        clairvoyant=("clairvoyant", "first"),
        speculation=("drafts", "any"),
        cells=(TPS, "size"),
        of_best=("of_best", "mean"),
        of_oracle=("of_oracle", "mean"),
        tokens_per_second=(TPS, "mean"),
    )
    return table.sort_values("of_best", ascending=False, kind="stable")


def standing(
    rows: pd.DataFrame, drafting: bool = False, planned_rows: int | None = None
) -> Standing:
    """The winner: highest mean of_best among policies without foresight that played every cell.

    `drafting`: only policies that use the draft can win. `planned_rows`: how many rows the complete
    comparison has; without it, it counts as complete if every policy has played every cell.
    """
    table = means(rows)
    cells = len(rows.groupby(CELL))
    eligible = table[~table["clairvoyant"] & (table["cells"] == cells)]
    if drafting:
        eligible = eligible[eligible["speculation"]]
    if eligible.empty:
        raise UserError("no policy without foresight ran on every workload, so nothing can win")
    winner, rivals = str(eligible.index[0]), eligible.index[1:]
    partial = bool((table["cells"] < cells).any())
    if planned_rows is not None:
        partial = partial or len(rows) < planned_rows
    reached = eligible["of_oracle"].iloc[0]
    of_possible = None
    if is_bounded(rows) and not partial:
        of_possible = float(with_possible(rows).groupby("policy")[SHARE_LOW].mean()[winner])
    lead = None
    if len(rivals):
        lead = float(eligible["of_best"].iloc[0] / eligible["of_best"].iloc[1]) - 1
    return Standing(
        winner=winner,
        of_best=float(eligible["of_best"].iloc[0]),
        of_oracle=None if pd.isna(reached) or partial else float(reached),
        runner_up=str(rivals[0]) if len(rivals) else None,
        lead=lead,
        cells=cells,
        approximate=bool(rows["approximate"].any()),
        partial=partial,
        of_possible=of_possible,
    )


def best_setting(rows: pd.DataFrame, policy: str) -> tuple[float, int]:
    """(cache ratio, gamma) at which `policy` is fastest in the mean over workloads."""
    played = rows[rows["policy"] == policy]
    speeds = played.groupby(["cache_ratio", "gamma"])[TPS].mean().reset_index()
    best = speeds.sort_values(TPS, ascending=False, kind="stable").iloc[0]
    return float(best["cache_ratio"]), int(best["gamma"])


def can_win_drafting(rows: pd.DataFrame) -> bool:
    """True if a policy without foresight that uses the draft played every cell."""
    table = means(rows)
    played = table["cells"] == len(rows.groupby(CELL))
    return bool((played & table["speculation"] & ~table["clairvoyant"]).any())


def drafting_sentence(result: Standing) -> str:
    """Which policy is first among those that use the draft."""
    prefix = PROVISIONAL if result.partial else ""
    text = f"{prefix}Among policies that draft, {result.winner} is first"
    if result.runner_up is not None and result.lead is not None:
        text += f", {result.lead:.1%} faster than {result.runner_up}"
    return f"{text}{_reached(result)}."


def sentence(result: Standing) -> str:
    """Which policy won, by how much, and how far from the oracle and from the possible it is."""
    prefix = "Approximate (text traces): " if result.approximate else ""
    prefix += PROVISIONAL if result.partial else ""
    cells = f"mean over {result.cells} setting{'s' if result.cells != 1 else ''}"
    meaning = f", {WITHOUT_DRAFT}" if result.winner.startswith(NO_SPECULATION) else ""
    text = f"{result.winner}{meaning} {'leads' if result.partial else 'wins'} ({cells})"
    if result.runner_up is not None and result.lead is not None:
        text += f", {result.lead:.1%} faster than {result.runner_up}, the next best"
    if result.of_oracle is None and not result.partial:
        text += "; no clairvoyant policy took part"
    return f"{prefix}{text}{_reached(result)}."


def _reached(result: Standing) -> str:
    """How much of the oracle's speed and of what is possible, as far as it is known."""
    text = ""
    if result.of_oracle is not None and result.of_oracle > 1:
        faster = result.of_oracle - 1
        text = f"; it is {faster:.1%} faster than the best clairvoyant policy, which is greedy,"
    elif result.of_oracle is not None:
        text = f"; it reaches {result.of_oracle:.1%} of the best clairvoyant policy"
    if result.of_possible is not None:
        joint = " and" if text else "; it"
        verb = "" if text.endswith("policy") else " reaches"
        text += f"{joint}{verb} at least {result.of_possible:.1%} of what is possible"
    return text.removesuffix(",")
