"""Pictures of `study theory`: pure functions of its tables. Titles state the finding."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.figure_style import new_figure, styles
from experiments.studies.information_table import MEANINGS, SIGNALS
from experiments.studies.theory_numbers import by_workload, gain, kept, middle_rate, relative_speed


def entropy_figure(information: pd.DataFrame) -> Figure:
    """Bars of entropy per workload and signal; the black line is the same with rows shuffled."""
    table = by_workload(information)
    times = gain(table, "entropy_count", "entropy_bit")
    title = (
        f"A window's count has {times:.2f} times the entropy of its bit, but fills only "
        f"{table['entropy_count_share'].mean():.0%} of what a count could carry "
        f"(the bit {table['entropy_bit_share'].mean():.0%})"
    )
    figure, axes = new_figure(title, width=10.0)
    _bars(axes, table, "entropy_{}", null="entropy_{}_null")
    axes.set_ylabel("entropy, bits per expert and pass\n(line: rows in random order)")
    return _finish(figure, axes, table)


def information_figure(information: pd.DataFrame) -> Figure:
    """Bars of mutual information with the next pass's bit."""
    table = by_workload(information)
    over_bit = gain(table, "next_bit_count", "next_bit_bit")
    over_row = gain(table, "next_bit_count", "next_bit_row")
    title = (
        f"About whether an expert is needed in the next pass, a count tells {over_bit:.2f} times "
        f"as much as the window's bit and {over_row:.2f} times as much as one row's bit"
    )
    figure, axes = new_figure(title, width=10.0)
    _bars(axes, table, "next_bit_{}", null=None)
    axes.set_ylabel("information about the next pass's bit,\nbits per expert, less shuffled pairs")
    return _finish(figure, axes, table)


def error_figure(rows: pd.DataFrame) -> Figure:
    """TPS over the injected error rate, per estimator and signal, relative to all_cpu."""
    speeds = relative_speed(rows)
    rate = middle_rate(speeds)
    shares = [
        kept(speeds, estimator, signal, rate)
        for estimator in ("levels", "decayed sum")
        for signal in ("count", "bit")
    ]
    title = (
        f"With {rate:.0%} of the reports wrong SpAc's levels keep {shares[0]:.0%} of their gain "
        f"over all-CPU with counts and {shares[1]:.0%} with bits; a decayed sum keeps "
        f"{shares[2]:.0%} and {shares[3]:.0%}"
    )
    figure, axes = new_figure(title, width=10.0)
    groups = speeds.groupby(["estimator", "signal"], sort=False)
    names = [f"{estimator} of {signal}" for (estimator, signal), _ in groups]
    look = styles(names)
    for name, (_, line) in zip(names, groups, strict=True):
        style = look[name]
        axes.plot(
            line["error_rate"], line["relative"], label=name, color=style.colour,
            marker=style.marker, linestyle="--" if name.endswith("bit") else "-",
        )  # fmt: skip
    axes.axhline(1.0, color="black", linewidth=1.0, linestyle=":")
    axes.annotate("all experts on the CPU", (0, 1.0), xytext=(2, 4), textcoords="offset points")
    axes.set_xlabel("share of the experts reported active that were not")
    axes.set_ylabel("TPS relative to all_cpu\nmean over workloads")
    _legend(figure, axes)
    return figure


def _bars(axes: Axes, table: pd.DataFrame, column: str, null: str | None) -> None:
    look = styles([MEANINGS[name] for name in SIGNALS])
    width = 0.8 / len(SIGNALS)
    for index, name in enumerate(SIGNALS):
        places = np.arange(len(table)) + (index - 1) * width
        style = look[MEANINGS[name]]
        axes.bar(
            places, table[column.format(name)], width * 0.92, label=MEANINGS[name],
            color=style.colour, hatch=style.hatch, edgecolor="white", linewidth=0.5,
        )  # fmt: skip
        if null is not None:
            axes.hlines(
                table[null.format(name)], places - width / 2, places + width / 2, color="black"
            )


def _finish(figure: Figure, axes: Axes, table: pd.DataFrame) -> Figure:
    marks = table["approximate"].to_numpy(bool)
    names = [f"~{name}" if mark else name for name, mark in zip(table.index, marks, strict=True)]
    axes.set_xticks(np.arange(len(table)), [name.replace("_", "\n") for name in names])
    if marks.any():
        axes.set_xlabel("~ approximate: text traces, the experts of rejected drafts are not known")
    _legend(figure, axes)
    return figure


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(len(labels), 4), fontsize=9,
        frameon=False,
    )  # fmt: skip
