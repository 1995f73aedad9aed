"""Heat maps of hits by layer: pure functions from a comparison's table to a figure."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.cell import HITS_BY_LAYER
from experiments.figure_style import new_figure
from experiments.ranking import TPS

COLOURS = "cividis"  # rises in brightness: told apart in grey and by colour-blind readers
LABELLED = 16  # layers; with more, cells have no room for numbers
DARK = 0.55  # hit rates above are on a bright ground and written in black


def has_hits(rows: pd.DataFrame) -> bool:
    """Whether every row has its hits by layer; those of older versions have none."""
    return HITS_BY_LAYER in rows and bool(rows[HITS_BY_LAYER].notna().all())


def hits_by_policy(rows: pd.DataFrame, winner: str) -> Figure:
    """Rows of one setting whose traces have equally many layers: policies x layers, the mean over
    workloads, the fastest policy on top."""
    speeds = rows.groupby("policy", sort=False)[TPS].mean().sort_values(ascending=False)
    rates = {policy: _mean(rows[rows["policy"] == policy]) for policy in speeds.index}
    foreseeing = set(rows.loc[rows["clairvoyant"], "policy"])
    names = [f"{name}*" if name in foreseeing else str(name) for name in rates]
    note = "policies by speed; * sees the future" if foreseeing else "policies by speed"
    return _heat_map(np.array(list(rates.values())), names, _span(winner, rates[winner]), note)


def hits_by_workload(rows: pd.DataFrame, winner: str) -> Figure:
    """The same for one policy: workloads x layers."""
    own = rows[rows["policy"] == winner]
    rates = {name: _mean(part) for name, part in own.groupby("workload", sort=False)}
    means = {name: np.nanmean(rate) for name, rate in rates.items()}
    best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    title = (
        f"{winner} finds most active experts resident on {best}: {means[best]:.0%}, and fewest on "
        f"{worst}: {means[worst]:.0%}"
    )
    if len(rates) == 1:
        title = _span(winner, rates[best])
    return _heat_map(np.array(list(rates.values())), list(map(str, rates)), title, "workloads")


def _mean(rows: pd.DataFrame) -> NDArray[np.float64]:
    """float64 [layers]: mean over the rows."""
    return np.mean(np.stack(list(rows[HITS_BY_LAYER])).astype(np.float64), axis=0)


def _span(policy: str, rates: NDArray[np.float64]) -> str:
    low, high = int(np.nanargmin(rates)), int(np.nanargmax(rates))
    return (
        f"Hits of {policy} go from {rates[low]:.0%} in layer {low} to {rates[high]:.0%} in layer "
        f"{high}"
    )


def _heat_map(rates: NDArray[np.float64], names: list[str], title: str, rows_are: str) -> Figure:
    figure, axes = new_figure(title, width=10.0, height=0.4 * len(names) + 1.7)
    image = axes.imshow(rates, aspect="auto", cmap=COLOURS, vmin=0, vmax=1)
    axes.grid(visible=False)
    axes.set_yticks(np.arange(len(names)), names)
    if rates.shape[1] <= LABELLED:
        axes.set_xticks(np.arange(rates.shape[1]))
        for (row, layer), rate in np.ndenumerate(rates):
            colour = "black" if rate > DARK else "white"
            text = "-" if np.isnan(rate) else f"{rate:.0%}"
            axes.text(layer, row, text, ha="center", va="center", fontsize=9, color=colour)
    axes.set_xlabel(f"MoE layer; rows: {rows_are}; hit rate counted by tokens")
    bar = figure.colorbar(image, ax=axes, format=lambda value, _: f"{value:.0%}", pad=0.02)
    bar.set_label("hit rate")
    return figure
