"""What copies did to speed: fate of prefetches and time waited. Pure functions of one setting's
rows."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.figure_style import new_figure
from experiments.ranking import TPS

MILLISECONDS = 1e3
FATES = {
    "prefetches_useful": ("useful: used while resident", "#009E73", ""),
    "prefetches_late": ("late: needed while on its way", "#E69F00", "//"),
    "prefetches_wasted": ("wasted: never used", "#7F7F7F", "xx"),
}


def per_token(rows: pd.DataFrame, column: str) -> pd.Series:
    """`column` per committed token by policy, mean over workloads."""
    ratio = rows[column] / rows["committed_tokens"]
    return ratio.groupby(rows["policy"], sort=False).mean()


def prefetch_fates(rows: pd.DataFrame) -> Figure | None:
    """Shares of prefetches that were useful, late or wasted, per policy that prefetches, over all
    workloads; None if none does."""
    played = rows.groupby("policy", sort=False)
    sums = played[["prefetches", *FATES]].sum().assign(clairvoyant=played["clairvoyant"].first())
    sums = sums.loc[played[TPS].mean().sort_values(ascending=False).index]
    sums = sums[sums["prefetches"] > 0]
    if sums.empty:
        return None
    precision = sums["prefetches_useful"] / sums["prefetches"]
    causal = precision[~sums["clairvoyant"]]
    best = (causal if len(causal) else precision).idxmax()
    figure, axes = new_figure(
        f"{best} prefetches most precisely{' without foresight' if len(causal) else ''}: "
        f"{precision[best]:.0%} of its copies ahead of need are used in time",
        width=10.0,
        height=0.42 * len(sums) + 1.8,
    )
    left = np.zeros(len(sums))
    for column, (name, colour, hatch) in FATES.items():
        shares = (sums[column] / sums["prefetches"]).to_numpy()
        axes.barh(
            np.arange(len(sums)), shares, left=left, label=name, color=colour, hatch=hatch,
            edgecolor="white", height=0.72,
        )  # fmt: skip
        left += shares
    amounts = per_token(rows, "prefetches")
    for place, policy in enumerate(sums.index):
        axes.text(1.01, place, f"{amounts[policy]:.1f} per token", va="center", fontsize=9)
    names = [f"{name}*" if sums.loc[name, "clairvoyant"] else name for name in sums.index]
    axes.set_yticks(np.arange(len(sums)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("share of prefetches; policies by speed; beside the bars: how many")
    figure.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure


def stalls(rows: pd.DataFrame) -> Figure:
    """Time per committed token, and how much of it each lane waits, per policy."""
    whole = per_token(rows, "decode_seconds").sort_values() * MILLISECONDS
    order = whole.index
    foreseeing = set(rows.loc[rows["clairvoyant"], "policy"])
    causal = [name for name in order if name not in foreseeing] or list(order)
    gpu = per_token(rows, "gpu_stall_seconds")[order] * MILLISECONDS
    cpu = per_token(rows, "cpu_stall_seconds")[order] * MILLISECONDS
    first = causal[0]
    figure, axes = new_figure(
        f"Under {first} a token takes {whole[first]:.2f} ms, of which the GPU waits "
        f"{gpu[first]:.2f} ms for copies or the CPU, and the CPU {cpu[first]:.2f} ms",
        width=10.0,
        height=0.5 * len(order) + 1.8,
    )
    places = np.arange(len(order))
    axes.barh(places, whole, 0.86, color="#E4E4E4", label="whole time")
    axes.barh(places - 0.2, gpu, 0.34, color="#009E73", label="GPU waits")
    axes.barh(
        places + 0.2, cpu, 0.34, color="#0072B2", hatch="..", edgecolor="white", label="CPU waits"
    )
    axes.set_yticks(places, [f"{name}*" if name in foreseeing else name for name in order])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.8)
    seen = "; * sees the future" if foreseeing else ""
    axes.set_xlabel(f"milliseconds per committed token, mean over workloads{seen}")
    figure.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure
