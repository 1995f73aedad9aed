"""Logarithmic axes have plain numbers: figures are written without formulas."""

import re
from pathlib import Path

import pytest

from experiments.figure_style import make_logarithmic, new_figure

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.mark.parametrize("values", [(0.02, 70.0), (3.0, 21.0), (1.0, 1e6)])
@pytest.mark.parametrize("side", ["xaxis", "yaxis"])
def test_marks_are_plain_numbers(values: tuple[float, float], side: str) -> None:
    figure, axes = new_figure("a title")
    axes.plot(values, values)
    axis = getattr(axes, side)
    make_logarithmic(axis)
    figure.canvas.draw()
    low, high = axis.get_view_interval()
    shown = [float(label.get_text()) for label in axis.get_ticklabels() if label.get_text()]
    assert len([one for one in shown if low <= one <= high]) >= 2
    assert not any("$" in label.get_text() for label in axis.get_ticklabels(which="both"))


def test_scales_are_made_in_one_place() -> None:
    users = [
        path.name
        for path in EXPERIMENTS.rglob("*.py")
        if re.search(r"set_[xy]scale|loglog|semilog|scale\(\"log\"", path.read_text())
    ]
    assert users == ["figure_style.py"]
