"""Pictures of a comparison: pure functions from its table to a figure. Titles state the finding."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.figure_style import Style, new_figure, styles
from experiments.possible import HIGH, LOW, is_bounded, with_possible
from experiments.ranking import NO_SPECULATION, TPS, layers_note, standing

ORACLE = "best clairvoyant"
POSSIBLE = "the fastest possible lies in this band"
BAND = "#DDDDDD"
HANDLE_INCHES, LETTER_INCHES = 0.65, 0.068  # of a legend at 9 points
TPS_AXIS = "committed tokens per second"


def tps_by_policy(rows: pd.DataFrame, partial: bool = False) -> Figure:
    """Bars per workload and policy at one cache ratio and gamma. Above them what is possible, as a
    band from the fastest schedule simulated to the upper bound; the oracle is a line."""
    result = standing(rows)
    title = f"{result.winner} is fastest at {_setting(rows)}"
    if partial:
        title = f"Provisional: {result.winner} is fastest so far at {_setting(rows)}"
    elif result.of_possible is not None:
        title = (
            f"{result.winner} is fastest and reaches at least {result.of_possible:.0%} of what is "
            f"possible at {_setting(rows)}"
        )
    elif result.of_oracle is not None:
        title = (
            f"{result.winner} reaches {result.of_oracle:.0%} of the best clairvoyant policy "
            f"at {_setting(rows)}"
        )
    figure, axes = new_figure(title + _mark(rows), width=10.0)
    causal = rows[~rows["clairvoyant"]]
    look = row_styles(causal)
    workloads = list(dict.fromkeys(rows["workload"]))
    policies = list(dict.fromkeys(causal["policy"]))
    width = 0.8 / len(policies)
    for index, policy in enumerate(policies):
        heights = _by_workload(causal[causal["policy"] == policy], workloads)
        places = np.arange(len(workloads)) + (index - (len(policies) - 1) / 2) * width
        style = look[policy]
        axes.bar(
            places, heights, width * 0.92, label=policy, color=style.colour, hatch=style.hatch,
            edgecolor="white", linewidth=0.5,
        )  # fmt: skip
    oracle = rows[rows["clairvoyant"]].groupby("workload")[TPS].max()
    for place, workload in enumerate(workloads):
        if workload in oracle.index:
            axes.hlines(
                oracle[workload], place - 0.42, place + 0.42, color="black", linestyle="--",
                label=ORACLE if place == 0 else "",
            )  # fmt: skip
    if is_bounded(rows):
        band = with_possible(rows).groupby("workload")[[LOW, HIGH]].first()
        for place, workload in enumerate(workloads):
            axes.fill_between(
                [place - 0.42, place + 0.42], *band.loc[workload], color=BAND, zorder=0.5,
                label=POSSIBLE if place == 0 else "",
            )  # fmt: skip
    axes.set_xticks(np.arange(len(workloads)), workloads)
    axes.set_ylabel(TPS_AXIS + layers_note(rows))
    _legend(figure, axes)
    return figure


def tps_over_ratio(rows: pd.DataFrame) -> Figure:
    """Mean TPS over workloads as the cache grows."""
    figure = _sweep(rows, "cache_ratio", "cache ratio (share of experts that have a slot)")
    figure.axes[0].set_xticks(sorted(rows["cache_ratio"].unique()))
    figure.axes[0].xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    return figure


def tps_over_gamma(rows: pd.DataFrame) -> Figure:
    """Mean TPS over workloads as the verify window grows."""
    figure = _sweep(rows, "gamma", "gamma (drafted tokens per pass)")
    figure.axes[0].set_xticks(sorted(rows["gamma"].unique()))
    return figure


def placements(rows: pd.DataFrame) -> Figure:
    """Where active experts were computed, per policy, mean over workloads."""
    parts = ("share_gpu", "share_fetch", "share_stream", "share_cpu")
    names = ("resident, GPU", "fetched on demand", "streamed on demand", "CPU")
    colours = ("#009E73", "#E69F00", "#CC79A7", "#0072B2")
    hatches = ("", "//", "xx", "..")
    table = rows.groupby("policy", sort=False)[[*parts, "hit_rate_per_token"]].mean()
    causal = table[~rows.groupby("policy", sort=False)["clairvoyant"].first()]
    best = str(causal["share_gpu"].idxmax())
    title = (
        f"Among policies without foresight {best} finds most active experts resident: "
        f"{causal['share_gpu'].max():.0%}"
    )
    figure, axes = new_figure(title + _mark(rows), width=10.0, height=0.42 * len(table) + 1.8)
    left = np.zeros(len(table))
    for part, name, colour, hatch in zip(parts, names, colours, hatches, strict=True):
        shares = table[part].to_numpy()
        axes.barh(
            np.arange(len(table)), shares, left=left, label=name, color=colour, hatch=hatch,
            edgecolor="white", height=0.72,
        )  # fmt: skip
        left += shares
    foreseeing = set(rows.loc[rows["clairvoyant"], "policy"])
    names_shown = [f"{name}*" if name in foreseeing else name for name in table.index]
    axes.set_yticks(np.arange(len(table)), names_shown)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel(
        f"share of active experts, mean over workloads, {_setting(rows)}"
        + ("; * sees the future" if foreseeing else "")
    )
    _legend(figure, axes)
    return figure


def row_styles(rows: pd.DataFrame) -> dict[str, Style]:
    """Styles of the policies of a table, in order of appearance."""
    return styles(list(dict.fromkeys(rows["policy"])))


def _sweep(rows: pd.DataFrame, key: str, label: str) -> Figure:
    """Lines of mean TPS over `key`, one per policy."""
    causal = rows[~rows["clairvoyant"]]
    table = causal.groupby(["policy", key], sort=False)[TPS].mean().reset_index()
    figure, axes = new_figure(_sweep_title(table, key) + _mark(rows))
    for policy, style in row_styles(causal).items():
        line = table[table["policy"] == policy].sort_values(key)
        axes.plot(
            line[key], line[TPS], label=policy, color=style.colour, marker=style.marker,
            linestyle=style.line, linewidth=1.8, markersize=6,
        )  # fmt: skip
    oracle = rows[rows["clairvoyant"]].groupby(["workload", key])[TPS].max().groupby(key).mean()
    if len(oracle):
        axes.plot(oracle.index, oracle, color="black", linestyle="--", marker="x", label=ORACLE)
    if is_bounded(rows):
        band = with_possible(rows).groupby(["workload", key])[[LOW, HIGH]].first()
        ends = band.groupby(key).mean()
        axes.fill_between(
            ends.index.to_numpy(), ends[LOW], ends[HIGH], color=BAND, zorder=0.5, label=POSSIBLE
        )
    axes.set_xlabel(label)
    axes.set_ylabel(f"{TPS_AXIS}\nmean over workloads{layers_note(rows)}")
    axes.set_ylim(bottom=0)
    _legend(figure, axes)
    return figure


def _sweep_title(causal: pd.DataFrame, key: str) -> str:
    best = causal.sort_values(TPS, ascending=False, kind="stable").iloc[0]
    value = f"{best[key]:.0%}" if key == "cache_ratio" else f"{best[key]}"
    name = "cache ratio" if key == "cache_ratio" else "gamma"
    point = f"at {name} {value}"
    if key == "gamma" and str(best["policy"]).startswith(NO_SPECULATION):
        point = "(gamma 0)"  # its rows stand in every column of gamma to be compared with
    winners = causal.loc[causal.groupby(key)[TPS].idxmax(), "policy"].unique()
    text = f"Fastest without foresight: {best['policy']} {point}, {best[TPS]:.1f} TPS"
    return text + (" (first at every point)" if len(winners) == 1 and len(causal) > 1 else "")


def _setting(rows: pd.DataFrame) -> str:
    ratios = ", ".join(f"{ratio:.0%}" for ratio in sorted(rows["cache_ratio"].unique()))
    gammas = ", ".join(str(gamma) for gamma in sorted(rows["gamma"].unique()))
    return f"{ratios} cache, gamma {gammas}"


def _mark(rows: pd.DataFrame) -> str:
    return " (approximate: text traces)" if rows["approximate"].any() else ""


def _by_workload(rows: pd.DataFrame, workloads: list[str]) -> np.ndarray:
    return rows.groupby("workload")[TPS].mean().reindex(workloads).to_numpy(float)


def legend_columns(labels: Sequence[str], inches: float) -> int:
    """Columns of a legend that fit `inches`, at most five; Matplotlib fills the first first."""
    for columns in range(min(len(labels), 5), 1, -1):
        widest = [part.max() for part in np.array_split(np.array([*map(len, labels)]), columns)]
        if columns * HANDLE_INCHES + LETTER_INCHES * sum(widest) <= inches:
            return columns
    return 1


def _legend(figure: Figure, axes: Axes) -> None:
    """Below the axes, so that it covers no data."""
    handles, labels = axes.get_legend_handles_labels()
    columns = legend_columns(labels, figure.get_figwidth())
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, fontsize=9, frameon=False
    )
