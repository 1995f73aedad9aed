"""The winner is the best mean relative speed without foresight; the sentence says so."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.ranking import can_win_drafting, means, sentence, standing, with_relations
from policies.errors import UserError
from tests.experiments.comparison_rows import FORESEEING, POLICIES, comparison_rows


def test_relations_are_to_the_best_of_each_cell() -> None:
    rows = with_relations(comparison_rows())
    spac = rows[rows["policy"] == "spac"]
    assert spac["of_best"].tolist() == [1.0, 1.0]
    assert spac["of_oracle"].tolist() == pytest.approx([0.8, 0.8])
    assert rows[rows["policy"] == "belady"]["of_best"].tolist() == pytest.approx([1.25, 1.25])


def test_standing_and_its_sentence() -> None:
    result = standing(comparison_rows())
    assert (result.winner, result.runner_up, result.cells) == ("spac", "lru_cpu", 2)
    assert result.lead == pytest.approx(0.25)
    assert sentence(result) == (
        "spac wins (mean over 2 settings), 25.0% faster than lru_cpu, the next best; "
        "it reaches 80.0% of the best clairvoyant policy."
    )


def test_approximate_is_said() -> None:
    assert sentence(standing(comparison_rows(approximate=True))).startswith("Approximate")


def test_without_an_oracle_none_is_claimed() -> None:
    rows = comparison_rows()
    result = standing(rows[~rows["clairvoyant"]])
    assert result.of_oracle is None
    assert "no clairvoyant policy took part" in sentence(result)


def test_a_policy_that_missed_a_workload_cannot_win() -> None:
    rows = comparison_rows()
    partial = rows[~((rows["policy"] == "spac") & (rows["workload"] == "prose"))]
    assert standing(partial).winner == "lru_cpu"


def test_clairvoyants_alone_give_no_winner() -> None:
    rows = comparison_rows()
    with pytest.raises(UserError, match="nothing can win"):
        standing(rows[rows["clairvoyant"]])


@given(st.lists(st.floats(0.1, 1000), min_size=5, max_size=5))
@settings(max_examples=50, deadline=None)
def test_a_clairvoyant_never_wins(speeds: list[float]) -> None:
    rows = comparison_rows()
    table = dict(zip(POLICIES, speeds, strict=True))
    rows["tokens_per_second"] = rows["policy"].map(table)
    result = standing(rows)
    assert result.winner not in FORESEEING and result.runner_up not in FORESEEING


def test_means_are_ordered() -> None:
    table = means(comparison_rows((0.1, 0.17)))
    assert table["of_best"].is_monotonic_decreasing
    assert table.loc["spac", "cells"] == 4
    assert isinstance(table, pd.DataFrame)


def test_a_policy_that_never_drafts_is_not_first_among_those_that_do() -> None:
    rows = comparison_rows()
    rows.loc[rows["policy"] == "spac", "mean_gamma"] = 0.0
    assert standing(rows).winner == "spac"
    assert standing(rows, drafting=True).winner == "lru_cpu"
    assert can_win_drafting(rows)
    rows["mean_gamma"] = 0.0
    assert not can_win_drafting(rows)


def test_an_interrupted_comparison_is_provisional() -> None:
    rows = comparison_rows()
    assert not standing(rows).partial
    missing = (rows["policy"] == "belady") & (rows["workload"] == "prose")
    result = standing(rows[~missing])
    assert result.partial and sentence(result).startswith("Provisional")
