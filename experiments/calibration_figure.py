"""Picture of a calibration: measured points with noise, the fits, and the points they never saw."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.figure_style import COLOURS, MARKERS, make_logarithmic
from runtime.calibrate_link import ALONE, LOADED
from runtime.calibration import Calibration
from runtime.calibration_points import Point

MILLION = 1e6
ROWS = ("expert, CPU", "expert, GPU", "layer without experts")


def calibration_figure(calibration: Calibration) -> Figure:
    """Left: copies by size; right: experts and layers by tokens. Filled: fitted, hollow: held
    out.
    """
    errors = calibration.errors()
    worst = max(errors, key=lambda name: errors[name]) if errors else None
    title = "No point was kept out of the fits"
    if worst is not None:
        mean = sum(errors.values()) / len(errors)
        title = (
            f"Points kept out of the fits are met within {mean:.0%} in the mean; worst: {worst}, "
            f"{errors[worst]:.0%}"
        )
    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    left, right = figure.subplots(1, 2)
    for place, curve in enumerate((ALONE, LOADED)):
        _draw(left, calibration.curve(curve), curve, place)
    make_logarithmic(left.xaxis, base=2)
    make_logarithmic(left.yaxis)
    left.set_xlabel("bytes of one copy")
    left.xaxis.set_major_formatter(lambda value, _: _bytes(value))
    left.set_ylabel("time of one copy (ms)")
    for place, curve in enumerate(ROWS):
        _draw(right, calibration.curve(curve), curve, place)
    right.set_xlabel("tokens of the expert, or rows of the layer")
    right.set_ylabel("time (ms)")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#DDDDDD", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=9, title="hollow: held out; bars: 10-90 %")
    return figure


def _draw(axes: Axes, points: Sequence[Point], name: str, place: int) -> None:
    colour, marker = COLOURS[place], MARKERS[place]
    for held_out in (False, True):
        chosen = [one for one in points if one.held_out is held_out]
        if not chosen:
            continue
        middle = [one.median_ns / MILLION for one in chosen]
        spread = [
            [(one.median_ns - one.low_ns) / MILLION for one in chosen],
            [(one.high_ns - one.median_ns) / MILLION for one in chosen],
        ]
        axes.errorbar(
            [one.x for one in chosen], middle, yerr=spread, color=colour, marker=marker,
            linestyle="none", capsize=2, linewidth=0.8, markersize=6,
            markerfacecolor="white" if held_out else colour, label=None if held_out else name,
        )  # fmt: skip
    fitted = [one for one in points if one.predicted_ns is not None]
    axes.plot(
        [one.x for one in fitted], [(one.predicted_ns or 0) / MILLION for one in fitted],
        color=colour, linewidth=1.2,
    )  # fmt: skip


def _bytes(value: float) -> str:
    return f"{value / 2**20:g} MiB" if value >= 2**20 else f"{value / 2**10:g} KiB"
