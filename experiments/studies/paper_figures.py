"""Pictures of `study paper`: pure functions of its tables. Titles state the finding."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.figure_style import new_figure
from experiments.studies.paper_predictions import FITTED, LLAMA_SD, SPAC

MEASURED, SIMULATED, FREE = "#7F7F7F", "#0072B2", "#56B4E9"


def speed_figure(speeds: pd.DataFrame) -> Figure:
    """Bars of simulated TPS per system; published values as diamonds."""
    row = speeds.set_index("system").loc[SPAC]
    rest = speeds[~speeds["note"].str.contains("nothing offloaded")]
    best = rest.loc[rest["tokens_per_second"].idxmax()]
    title = (
        f"MoE-SpAc is predicted at {row['tokens_per_second']:.1f} tokens/s where "
        f"{row['published']:.1f} are published; fastest that offloads: {best['system']}, "
        f"{best['tokens_per_second']:.1f}"
    )
    figure, axes = new_figure(title, width=10.0, height=0.34 * len(speeds) + 1.8)
    places = np.arange(len(speeds))
    colours = [MEASURED if kind == FITTED else SIMULATED for kind in speeds["kind"]]
    bars = axes.barh(
        places, speeds["tokens_per_second"], color=colours, height=0.7, edgecolor="white"
    )
    axes.bar_label(bars, fmt="%.1f", padding=10, fontsize=9)
    axes.plot(
        speeds["published"].astype(float), places, linestyle="", marker="D", color="#D55E00",
        label="published",
    )  # fmt: skip
    axes.barh([0], [0], color=MEASURED, label="simulated, fitted on the published value")
    axes.barh([0], [0], color=SIMULATED, label="simulated, predicted")
    axes.set_yticks(places, speeds["system"])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.1 * speeds["tokens_per_second"].max())
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.8)
    axes.set_xlabel("committed tokens per second, Qwen3-30B-A3B on an RTX 4090, generated routing")
    figure.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure


def sensitivity_figure(rows: pd.DataFrame) -> Figure:
    """SpAc and its rival for each value of what is unknown."""
    low, high = rows["ratio"].min(), rows["ratio"].max()
    title = (
        f"What the paper does not say moves MoE-SpAc from {rows[SPAC].min():.0f} to "
        f"{rows[SPAC].max():.0f} tokens/s, and its gain from {low:.2f} to {high:.2f} times"
    )
    figure, axes = new_figure(title, width=10.0, height=0.34 * len(rows) + 1.8)
    places = np.arange(len(rows))
    axes.hlines(places, rows[LLAMA_SD], rows[SPAC], color="#DDDDDD", linewidth=3)
    axes.plot(rows[LLAMA_SD], places, linestyle="", marker="s", color=MEASURED, label=LLAMA_SD)
    axes.plot(rows[SPAC], places, linestyle="", marker="o", color=SIMULATED, label=SPAC)
    for place, (speed, rival, ratio) in enumerate(
        zip(rows[SPAC], rows[LLAMA_SD], rows["ratio"], strict=True)
    ):
        axes.annotate(
            f"x {ratio:.2f}", (max(speed, rival), place), xytext=(8, -3),
            textcoords="offset points", fontsize=9,
        )  # fmt: skip
    names = [f"{one} {value}".strip() for one, value in zip(rows["unknown"], rows["value"],
             strict=True)]  # fmt: skip
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.1 * rows[[SPAC, LLAMA_SD]].to_numpy().max())
    axes.set_xlabel("committed tokens per second (simulated)")
    figure.legend(loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    return figure
