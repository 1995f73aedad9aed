"""Heat maps, prefetches, stalls and the table behind them repeat the numbers of the rows."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.breakdown_table import breakdown_table
from experiments.copy_figures import prefetch_fates, stalls
from experiments.figure_style import figure_bytes, save_figure
from experiments.figures import tps_by_policy
from experiments.heat_maps import hits_by_policy, hits_by_workload
from experiments.pictures import draw_details
from tests.experiments.report_pages import LAYERS, report_rows


def title(figure: Figure) -> str:
    return " ".join(figure.get_suptitle().split())


def shown(figure: Figure) -> NDArray[np.float64]:
    """The rates of a heat map, rows x layers."""
    return np.asarray(figure.axes[0].images[0].get_array())


def test_heat_map_holds_the_mean_of_every_policy_and_layer() -> None:
    figure = hits_by_policy(report_rows(), "spac")
    rates = shown(figure)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["belady*", "window_oracle*", "spac", "lru_cpu", "all_cpu"]
    assert rates[names.index("spac")] == pytest.approx(0.2 + np.linspace(0, 0.2, LAYERS))
    assert title(figure) == "Hits of spac go from 20% in layer 0 to 40% in layer 7"


def test_heat_map_of_workloads_is_of_the_winner() -> None:
    rows = report_rows()
    lower = rows["workload"] == "prose"
    rows.loc[lower, "hits_by_layer"] = rows.loc[lower, "hits_by_layer"].map(lambda one: one - 0.1)
    figure = hits_by_workload(rows, "spac")
    assert shown(figure).mean(axis=1) == pytest.approx([0.3, 0.2])
    assert "resident on code: 30%, and fewest on prose: 20%" in title(figure)
    one = hits_by_workload(rows[lower], "spac")
    assert title(one).startswith("Hits of spac go from 10%")


def test_many_layers_are_drawn_without_numbers() -> None:
    rows = report_rows()
    rows["hits_by_layer"] = [np.full(48, 0.5)] * len(rows)
    assert not hits_by_policy(rows, "spac").axes[0].texts


def test_traces_of_other_depth_have_heat_maps_of_their_own() -> None:
    rows = report_rows()
    deep = rows["workload"] == "prose"
    rows.loc[deep, "trace_layers"] = 24
    rows.loc[deep, "hits_by_layer"] = rows.loc[deep, "hits_by_layer"].map(lambda _: np.zeros(24))
    drawn = draw_details(rows)
    for layers in (8, 24):
        assert shown(drawn[f"hits_by_policy_{layers}_layers"]).shape == (5, layers)


def test_an_older_table_has_no_heat_map() -> None:
    assert set(draw_details(report_rows().drop(columns="hits_by_layer"))) == {
        "stalls", "prefetches",
    }  # fmt: skip


def test_prefetches_are_shares_of_those_who_prefetch() -> None:
    figure = prefetch_fates(report_rows())
    assert figure is not None
    widths = np.array([bar.get_width() for bar in figure.axes[0].patches]).reshape(3, 2)
    assert list(widths[:, 0]) == pytest.approx([0.6, 0.3, 0.1])  # spac
    assert list(widths[:, 1]) == pytest.approx([0.5, 0.0, 0.5])  # lru_cpu
    assert title(figure).startswith("spac prefetches most precisely without foresight: 60%")
    assert [text.get_text() for text in figure.axes[0].texts] == ["1.0 per token"] * 2
    assert prefetch_fates(report_rows().query("policy == 'all_cpu'")) is None


@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg"])
def test_dollar_signs_in_names_are_no_formula(tmp_path: Path, ending: str) -> None:
    rows = report_rows().replace({"workload": {"code": r"$\frac$"}, "policy": {"spac": r"$\x$"}})
    for figure in (tps_by_policy(rows), *draw_details(rows).values()):
        assert save_figure(figure, tmp_path / f"a{ending}").stat().st_size > 1000


def test_stalls_are_milliseconds_per_token() -> None:
    rows = report_rows()
    figure = stalls(rows)
    own = rows[rows["policy"] == "spac"]
    whole = (1e3 / own["tokens_per_second"]).mean()
    assert title(figure).startswith(f"Under spac a token takes {whole:.2f} ms, of which the GPU")
    assert f"{whole * 0.4:.2f} ms" in title(figure) and f"{whole * 0.1:.2f} ms" in title(figure)


def test_breakdown_is_by_speed_and_marks_the_winner() -> None:
    table = breakdown_table(report_rows(), "some", "spac")
    assert [row.cells[0] for row in table.rows if row.first] == ["spac"]
    found = {row.cells[0]: dict(zip(table.headings, row.cells, strict=True)) for row in table.rows}
    assert list(found)[:3] == ["belady*", "window_oracle*", "spac"]
    spac = found["spac"]
    assert (spac["useful"], spac["late"], spac["wasted"]) == ("60%", "30%", "10%")
    assert (spac["hits"], spac["CPU"], spac["MB"]) == ("20%", "70%", "10.7")
    assert found["all_cpu"]["useful"] == "-"


def test_an_svg_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    one, two = (figure_bytes(stalls(report_rows()), "svg") for _ in range(2))
    assert one == two and b"<text" not in one  # outlines: no font is needed
    path = save_figure(stalls(report_rows()), tmp_path / "a.svg")
    assert path.read_bytes() == one
