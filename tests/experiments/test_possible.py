"""The bracket of what is possible: from the table to its share, its words and its band."""

import pandas as pd
import pytest

from experiments import figures
from experiments.possible import is_bounded, share_range, with_possible
from experiments.ranking import sentence, standing
from experiments.readme import results_section
from tests.experiments.comparison_rows import comparison_rows
from tests.experiments.test_tables import shown


def bounded(**changes: object) -> pd.DataFrame:
    """1,000 tokens a row; no schedule of code is faster than 40 TPS with the draft and 50 without,
    half of that in prose."""
    rows = comparison_rows(ratios=(0.25,), gammas=(0,))
    limit = rows["policy"].map(lambda name: 50.0 if name == "lru_cpu" else 40.0)
    factor = rows["workload"].map({"code": 1.0, "prose": 0.5})
    return rows.assign(committed_tokens=1000, bound_seconds=1000 / (limit * factor), **changes)


def test_the_bracket_is_that_of_the_cell() -> None:
    rows = with_possible(bounded())
    code = rows[rows["workload"] == "code"].set_index("policy")
    assert (code["possible_high"] == 50.0).all()
    assert (code["possible_low"] == 25.0 * 1.25).all()  # belady, the fastest that was simulated
    assert code.loc["spac", "of_possible_low"] == pytest.approx(0.5)
    assert code.loc["spac", "of_possible_high"] == pytest.approx(0.8)


def test_a_policy_that_beats_the_clairvoyants_reaches_all_that_was_seen() -> None:
    rows = bounded()
    rows.loc[rows["policy"] == "spac", "tokens_per_second"] *= 1.5
    spac = with_possible(rows).set_index("policy").loc["spac"]
    assert (spac["of_possible_high"] == 1.0).all()
    result = standing(rows)
    assert result.of_oracle == pytest.approx(1.2)
    assert sentence(result).endswith(
        "it is 20.0% faster than the best clairvoyant policy, which is greedy, and reaches "
        "at least 75.0% of what is possible."
    )


def test_without_bounds_nothing_is_claimed() -> None:
    rows = comparison_rows()
    assert not is_bounded(rows) and with_possible(rows) is rows
    some = bounded()
    some.loc[3, "bound_seconds"] = float("nan")
    assert not is_bounded(some) and standing(some).of_possible is None
    assert "oracle" in shown(rows) and "reached" not in shown(rows)


def test_table_sentence_and_pictures_show_it() -> None:
    rows = bounded()
    text = shown(rows, width=80)
    (limit,) = [line.split() for line in text.splitlines() if line.startswith(" upper bound ")]
    assert limit == ["upper", "bound", "50.0", "25.0", "-", "-", "-"]
    (spac,) = [line.split() for line in text.splitlines() if line.startswith(" spac ")]
    assert spac[1:] == ["25.0", "12.5", "100%", "50-80%", "20%"]
    assert sentence(standing(rows)).endswith(
        "it reaches 80.0% of the best clairvoyant policy and at least 50.0% of what is possible."
    )
    figure = figures.tps_by_policy(rows)
    assert "reaches at least 50% of what is possible" in " ".join(figure.get_suptitle().split())
    bands = [one for one in figure.axes[0].collections if hasattr(one, "get_datalim")]
    heights = sorted(
        (path.vertices[:, 1].min(), path.vertices[:, 1].max())
        for one in bands
        for path in one.get_paths()
        if path.vertices[:, 1].min() != path.vertices[:, 1].max()
    )
    assert heights == [(15.625, 25.0), (31.25, 50.0)]


def test_the_readme_prints_it() -> None:
    lines = results_section(bounded()).splitlines()
    assert lines[0].endswith("and at least 50% of what is possible.")
    assert lines[2].endswith("| of what is possible |")
    assert lines[4] == "| *upper bound* | 50 | 25 | |"
    assert lines[5] == "| `belady`* | 31 | 16 | 62-100% |"
    assert "| `spac` | 25 | 12 | 50-80% |" in lines
    assert "possible" not in results_section(comparison_rows())


def test_an_interrupted_comparison_claims_nothing() -> None:
    rows = bounded()
    result = standing(rows, planned_rows=len(rows) + 1)
    assert result.partial and result.of_oracle is None and result.of_possible is None
    assert sentence(result) == (
        "Provisional, the comparison was interrupted: spac leads (mean over 2 settings), 25.0% "
        "faster than lru_cpu, the next best."
    )
    assert not standing(rows, planned_rows=len(rows)).partial
    title = figures.tps_by_policy(rows, partial=True).get_suptitle()
    assert title.startswith("Provisional: spac is fastest so far")


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.614, 0.881, "61-89%"),
        (0.614, 1.0, "61-100%"),
        (0.5, 0.5, "50%"),
        (0.999, 1.0, "99-100%"),
        (float("nan"), 1.0, "-"),
    ],
)
def test_ends_of_a_range_are_rounded_outwards(low: float, high: float, text: str) -> None:
    assert share_range(low, high) == text
