"""The picture of decision times: a mark for the median of each policy, another for its
99th percentile."""

import numpy as np
from matplotlib.figure import Figure

from experiments.decision_file import DecisionFile
from experiments.figure_style import COLOURS, make_logarithmic, new_figure

US = 1e3


def decisions_figure(times: DecisionFile) -> Figure:
    """Policies from the fastest down, on a logarithmic scale."""
    order = sorted(times.policies.items(), key=lambda item: item[1].layer_ns)
    medians = [one.layer_ns / US for _, one in order]
    title = (
        f"A policy decides about a layer in {medians[0]:.0f} to {medians[-1]:.0f} us on "
        f"{times.cpu}, {times.cores} cores ({times.shape['experts']} experts a layer, "
        f"{times.shape['gamma'] + 1} rows)"
    )
    figure, axes = new_figure(title, height=max(3.0, 0.21 * len(order) + 1.2))
    places = np.arange(len(order))
    tails = [one.layer_p99_ns / US for _, one in order]
    axes.hlines(places, medians, tails, color="#BBBBBB", linewidth=1.5)
    axes.plot(medians, places, "o", color=COLOURS[1], label="median")
    axes.plot(tails, places, "D", color=COLOURS[0], markersize=5, label="99 of 100 are faster")
    axes.set_yticks(places, [name for name, _ in order], fontsize=8)
    axes.set_ylim(len(order) - 0.5, -0.5)
    make_logarithmic(axes.xaxis)
    axes.set_xlabel("time of one decision, microseconds (logarithmic)")
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.8)
    axes.legend(loc="upper right")  # the slow ones are at the bottom
    return figure
