"""A picture of a search: for each parameter what it does around the tuned values, on both sides."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.figure_style import COLOURS, MARKERS, new_title
from experiments.tuning_space import Axis

COLUMNS = 3
FIT, HELD, TRIALS = COLOURS[1], COLOURS[0], "#BBBBBB"


@dataclass(frozen=True)
class Curve:
    """One parameter varied, the others as tuned; gains over the default, 0.1 = 10 % faster, at each
    of `values`. `trials`: (value, gain) of the search's trials that ended by themselves."""

    axis: Axis
    values: Sequence[Any]
    fit: Sequence[float]
    held_out: Sequence[float]
    tuned: Any
    trials: Sequence[tuple[Any, float]]

    @property
    def span(self) -> float:
        """Between the best and the worst value, on the fit requests."""
        return max(self.fit) - min(self.fit)


def sensitivity_figure(curves: Sequence[Curve], policy: str) -> Figure:
    """Small multiples, the parameter that matters most first."""
    ordered = sorted(curves, key=lambda curve: -curve.span)
    rows = math.ceil(len(ordered) / COLUMNS)
    figure = Figure(figsize=(10, 1.2 + 2.4 * rows), layout="constrained")
    new_title(figure, finding(ordered, policy), 10)
    wide = min(COLUMNS, len(ordered))
    panels = list(figure.subplots(rows, wide, sharey=True, squeeze=False).flat)
    for panel, curve in zip(panels, ordered, strict=False):
        draw_curve(panel, curve)
    for panel in panels[len(ordered) :]:
        panel.set_visible(False)
    for row in range(rows):
        panels[row * wide].set_ylabel("gain over default (%)")
    figure.legend(handles=legend(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def finding(ordered: Sequence[Curve], policy: str) -> str:
    """The title: which parameter matters and which does not."""
    most, rest = ordered[0], [curve.axis.name for curve in ordered if curve.span < 0.01]
    text = (
        f"{policy}, one parameter varied, the others tuned: {most.axis.name} matters most, "
        f"{most.span:.0%} between its best and worst value"
    )
    return text + (f"; less than 1%: {', '.join(rest)}" if rest else "")


def draw_curve(panel: Axes, curve: Curve) -> None:
    """One parameter."""
    places: Mapping[Any, float] = (
        {value: place for place, value in enumerate(curve.values)} if curve.axis.choices else {}
    )

    def at(value: Any) -> float:
        return places[value] if places else float(value)

    tried = [(at(value), 100 * gain) for value, gain in curve.trials]
    if tried:
        panel.scatter(*zip(*tried, strict=True), s=10, color=TRIALS, zorder=1)
    where = [at(value) for value in curve.values]
    for gains, colour, marker in (
        (curve.fit, FIT, MARKERS[0]), (curve.held_out, HELD, MARKERS[1]),
    ):  # fmt: skip
        percent, line = [100 * gain for gain in gains], "" if places else "-"
        panel.plot(where, percent, color=colour, marker=marker, markersize=4, linestyle=line)
    panel.axvline(at(curve.tuned), color="black", linestyle=":", linewidth=1)
    panel.axhline(0, color="#DDDDDD", linewidth=0.8, zorder=0)
    if places:
        panel.set_xticks(list(places.values()), [str(value).lower() for value in places])
        panel.set_xlim(-0.5, len(places) - 0.5)
    panel.set_xlabel(curve.axis.name)
    panel.spines[["top", "right"]].set_visible(False)


def legend() -> list[Line2D]:
    """What colours and lines mean."""
    return [
        Line2D([], [], color=FIT, marker=MARKERS[0], label="fit requests"),
        Line2D([], [], color=HELD, marker=MARKERS[1], label="held-out requests"),
        Line2D([], [], color="black", linestyle=":", label="tuned value"),
        Line2D([], [], color=TRIALS, marker="o", linestyle="", label="trials of the search"),
    ]
