"""Which figures a comparison gets, and their files."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from experiments import figures
from experiments.copy_figures import prefetch_fates, stalls
from experiments.figure_style import save_figure
from experiments.heat_maps import has_hits, hits_by_policy, hits_by_workload
from experiments.lanes_figure import pass_lanes_figure
from experiments.possible import with_possible
from experiments.ranking import best_setting, standing
from traces.runlog import RunLog


def draw_all(rows: pd.DataFrame, log: RunLog | None, partial: bool = False) -> dict[str, Figure]:
    """File stem -> figure. `rows` may hold sweeps beside the main cells; see column `sweep`.
    `partial`: the comparison was interrupted, and the titles say so."""
    rows = with_possible(rows)
    base = winning_cells(rows)
    ratio, gamma = base["cache_ratio"].iloc[0], base["gamma"].iloc[0]
    drawn = {
        "tps_by_policy": figures.tps_by_policy(base, partial),
        "placements": figures.placements(base),
    }
    over_ratio = comparable(rows[rows["gamma"] == gamma], "cache_ratio")
    if over_ratio["cache_ratio"].nunique() > 1:
        drawn["tps_over_cache_ratio"] = figures.tps_over_ratio(over_ratio)
    over_gamma = comparable(rows[rows["cache_ratio"] == ratio], "gamma")
    if over_gamma["gamma"].nunique() > 1:
        drawn["tps_over_gamma"] = figures.tps_over_gamma(over_gamma)
    if log is not None:
        drawn["verify_pass_lanes"] = pass_lanes_figure(log)
    return drawn


def draw_details(rows: pd.DataFrame) -> dict[str, Figure]:
    """File stem -> figure of what only the report shows: hits by layer, prefetches, stalls, at the
    setting where the winner is fastest."""
    base, winner = winning_cells(rows), standing(rows[~rows["sweep"]]).winner
    drawn = {"stalls": stalls(base)}
    fates = prefetch_fates(base)
    if fates is not None:
        drawn["prefetches"] = fates
    if not has_hits(base):
        return drawn
    # Traces with other numbers of layers have heat maps of their own.
    for layers, part in base.groupby("trace_layers", sort=False):
        mark = "" if base["trace_layers"].nunique() == 1 else f"_{layers}_layers"
        drawn[f"hits_by_policy{mark}"] = hits_by_policy(part, winner)
        drawn[f"hits_by_workload{mark}"] = hits_by_workload(part, winner)
    return drawn


def winning_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """The main rows of all policies at the setting where the winner is fastest."""
    main = rows[~rows["sweep"]]
    ratio, gamma = best_setting(main, standing(main).winner)
    return main[(main["cache_ratio"] == ratio) & (main["gamma"] == gamma)]


def comparable(rows: pd.DataFrame, key: str) -> pd.DataFrame:
    """Only workloads and policies that are there at every value of `key`: means must not mix."""
    values = rows[key].nunique()
    for column in ("workload", "policy"):
        seen = rows.groupby(column)[key].nunique()
        rows = rows[rows[column].isin(seen.index[seen == values])]
    return rows


def save_all(
    drawn: dict[str, Figure], folder: Path, endings: Sequence[str] = (".png",)
) -> list[Path]:
    """Write <stem><ending> each."""
    return [
        save_figure(figure, folder / f"{stem}{ending}")
        for stem, figure in drawn.items()
        for ending in endings
    ]
