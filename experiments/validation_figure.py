"""Picture of a validation: measured against predicted time of each policy, with noise."""

import numpy as np
from matplotlib.figure import Figure

from experiments.figure_style import new_figure
from experiments.validation import Validation
from experiments.validation_report import tau_words

PREDICTED, MEASURED = "#0072B2", "#E69F00"


def validation_figure(result: Validation) -> Figure:
    """A pair of bars per policy, fastest first; the error stands beside them."""
    shown = sorted(result.agreements, key=lambda one: one.measured_seconds)
    mean = sum(abs(one.error) for one in shown) / len(shown)
    figure, axes = new_figure(
        f"{result.name.capitalize()} clock: predicted within {mean:.1%} in the mean, "
        f"{abs(result.worst.error):.1%} at worst ({result.worst.policy}); Kendall tau "
        f"{tau_words(result)}",
        width=9.0,
        height=0.62 * len(shown) + 2.0,
    )
    places = np.arange(len(shown))
    spread = [
        [one.measured_seconds - one.fastest_seconds for one in shown],
        [one.slowest_seconds - one.measured_seconds for one in shown],
    ]
    axes.barh(
        places - 0.2, [one.predicted_seconds for one in shown], 0.38, color=PREDICTED,
        label="predicted by the simulator",
    )  # fmt: skip
    axes.barh(
        places + 0.2, [one.measured_seconds for one in shown], 0.38, color=MEASURED, hatch="//",
        edgecolor="white", xerr=spread, capsize=3,
        label=f"measured: median, fastest and slowest of {shown[0].repeats} runs",
    )  # fmt: skip
    right = max(max(one.slowest_seconds, one.predicted_seconds) for one in shown)
    for place, one in zip(places, shown, strict=True):
        end = max(one.slowest_seconds, one.predicted_seconds)
        axes.text(end + 0.01 * right, place, f"{one.error:+.1%}", va="center", fontsize=9)
    axes.set_yticks(places, [one.policy for one in shown])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.8)
    axes.set_xlim(0, right * 1.12)
    axes.set_xlabel("decode time on the same passes (s); beside the bars: error of the prediction")
    figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=9)
    return figure
