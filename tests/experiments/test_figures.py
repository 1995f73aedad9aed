"""Figures are pure functions; their titles and marks repeat the numbers of the table."""

import re
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from experiments import figures
from experiments.figure_style import save_figure, styles
from experiments.ranking import TPS, standing
from tests.experiments.comparison_rows import comparison_rows


def title(figure: Figure) -> str:
    return " ".join(figure.get_suptitle().split())


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_bars_reach_the_tokens_per_second_of_the_table() -> None:
    rows = comparison_rows()
    figure = figures.tps_by_policy(rows)
    heights = sorted(bar.get_height() for bar in figure.axes[0].patches)
    assert heights == pytest.approx(sorted(rows.loc[~rows["clairvoyant"], TPS]))


def test_title_of_the_bars_is_the_standing() -> None:
    rows = comparison_rows()
    result = standing(rows)
    assert result.of_oracle is not None
    expected = f"spac reaches {result.of_oracle:.0%} of the best clairvoyant policy at 17% cache"
    assert title(figures.tps_by_policy(rows)).startswith(expected)


def test_sweep_title_names_the_best_point() -> None:
    rows = comparison_rows((0.1, 0.17, 0.25))
    found = re.search(
        r"(\w+) at cache ratio (\d+)%, ([\d.]+) TPS", title(figures.tps_over_ratio(rows))
    )
    assert found is not None
    best = rows[(rows["policy"] == "spac") & (rows["cache_ratio"] == 0.25)][TPS].mean()
    assert found.groups() == ("spac", "25", f"{best:.1f}")


def test_sweep_draws_one_line_per_policy() -> None:
    rows = comparison_rows(gammas=(2, 4, 8))
    figure = figures.tps_over_gamma(rows)
    causal = rows.loc[~rows["clairvoyant"], "policy"]
    assert legend(figure) == [*dict.fromkeys(causal), "best clairvoyant"]
    line = next(line for line in figure.axes[0].lines if line.get_label() == "spac")
    assert list(line.get_xdata()) == [2, 4, 8]


def test_placements_add_up() -> None:
    rows = comparison_rows()
    figure = figures.placements(rows)
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert sum(widths) == pytest.approx(len(rows["policy"].unique()))
    assert "spac" in title(figure) and "20%" in title(figure)


@pytest.mark.parametrize(
    "draw",
    [figures.tps_by_policy, figures.tps_over_ratio, figures.tps_over_gamma, figures.placements],
)
def test_approximate_is_in_every_title(draw: object) -> None:
    assert callable(draw)
    assert "approximate" in title(draw(comparison_rows(approximate=True)))


def test_policies_differ_without_colour() -> None:
    names = [f"policy{number}" for number in range(9)]
    look = styles(names)
    assert len({(style.marker, style.line) for style in look.values()}) == len(names)
    assert len({style.hatch for style in look.values()}) == len(names)


def test_png(tmp_path: Path) -> None:
    path = save_figure(figures.tps_by_policy(comparison_rows()), tmp_path / "a.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_drawing_does_not_change_the_table() -> None:
    rows = comparison_rows()
    before = rows.copy()
    figures.tps_by_policy(rows)
    figures.placements(rows)
    pd.testing.assert_frame_equal(rows, before)


def test_legends_fit_the_figure() -> None:
    short, long = ["spac"] * 10, ["a policy with a name of more than forty letters"] * 3
    assert figures.legend_columns(short, 9.0) == 5
    assert figures.legend_columns(long, 9.0) == 2
    assert figures.legend_columns(long, 3.0) == 1
    assert figures.legend_columns(["spac"], 9.0) == 1
