"""Which figures a comparison gets, and their files."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from experiments import figures
from experiments.figure_style import save_figure
from experiments.lanes_figure import pass_lanes_figure
from experiments.possible import with_possible
from experiments.ranking import best_setting, standing
from traces.runlog import RunLog


def draw_all(rows: pd.DataFrame, log: RunLog | None, partial: bool = False) -> dict[str, Figure]:
    """File stem -> figure. `rows` may hold sweeps beside the main cells; see column `sweep`.
    `partial`: the comparison was interrupted, and the titles say so."""
    rows = with_possible(rows)
    main = rows[~rows["sweep"]]
    ratio, gamma = best_setting(main, standing(main).winner)
    base = main[(main["cache_ratio"] == ratio) & (main["gamma"] == gamma)]
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


def comparable(rows: pd.DataFrame, key: str) -> pd.DataFrame:
    """Only workloads and policies that are there at every value of `key`: means must not mix."""
    values = rows[key].nunique()
    for column in ("workload", "policy"):
        seen = rows.groupby(column)[key].nunique()
        rows = rows[rows[column].isin(seen.index[seen == values])]
    return rows


def save_all(drawn: dict[str, Figure], folder: Path) -> list[Path]:
    """Write <stem>.png each."""
    return [save_figure(figure, folder / f"{stem}.png") for stem, figure in drawn.items()]
