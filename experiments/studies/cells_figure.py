"""Picture of `study cells`: speed of ours over the best published policy in every cell."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.figure_style import COLOURS, MARKERS, new_figure

LINES = (
    ("ratio", "best published, window of the cell"),
    ("ratio_tuned", "best published, window tuned in hindsight"),
    ("null_ratio", "the same on the trace in random order, among those played there"),
)


def cells_figure(table: pd.DataFrame) -> Figure:
    """A column of marks per cell, grouped by trace; the line at 1 is the rival's speed."""
    wins = int((table["ratio"] >= 0.99).sum())
    tuned = int((table["ratio_tuned"] >= 0.99).sum())
    title = (
        f"ours reaches 0.99 times the best published policy in {wins} of {len(table)} cells, and "
        f"in {tuned} where that policy's window is tuned in hindsight"
    )
    figure, axes = new_figure(title, width=12.0, height=5.0)
    traces = list(table["workload"].unique())
    per_trace = [table[table["workload"] == name] for name in traces]
    start, ticks, labels = 0.0, [], []
    for name, part in zip(traces, per_trace, strict=True):
        places = start + np.arange(len(part))
        for index, (column, label) in enumerate(LINES):
            axes.plot(
                places, part[column], linestyle="none", marker=MARKERS[index],
                color=COLOURS[index], markersize=6, label=label if start == 0 else None,
            )  # fmt: skip
        ticks.append(float(places.mean()))
        marked = "~" if part["approximate"].any() else ""
        labels.append(f"{marked}{name}".replace("_", "\n"))
        start = places[-1] + 2.5
        axes.axvline(start - 1.25, color="#DDDDDD", linewidth=0.8)
    axes.axhline(1.0, color="black", linewidth=1.0)
    axes.set_xticks(ticks, labels)
    axes.set_ylabel("tokens per second of ours / of the rival")
    ratios = ", ".join(f"{value:.0%}" for value in table["cache_ratio"].unique())
    windows = ", ".join(str(value) for value in table["window"].unique())
    axes.set_xlabel(
        f"within a trace from left to right: cache ratio {ratios}, each with windows of {windows} "
        "rows; ~ approximate"
    )
    figure.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure
