"""BankReplay, the generated replay that timings use: lawful, repeatable, one request at a time."""

from dataclasses import replace

import numpy as np
import pytest

from traces.replay import passes
from traces.synthetic_replay import BankReplay, BankShape

SHAPE = BankShape(layers=3, experts=16, top_k=4, requests=3, tokens=200, bank=12)


def test_rows_choose_distinct_experts_that_exist() -> None:
    experts = BankReplay(SHAPE).arrays(0).experts
    assert experts.shape == (200, 3, 4) and experts.max() < 16
    ordered = np.sort(experts, axis=2)
    assert (ordered[..., 1:] > ordered[..., :-1]).all()


def test_the_seed_decides_all_and_requests_differ() -> None:
    one, again, other = BankReplay(SHAPE), BankReplay(SHAPE), BankReplay(SHAPE, seed=1)
    again.arrays(2)  # in another order
    for left, right in zip(one.arrays(1)[1:7], again.arrays(1)[1:7], strict=True):
        np.testing.assert_array_equal(left, right)
    assert (one.arrays(1).experts != one.arrays(0).experts).any()
    assert (one.arrays(1).experts != other.arrays(1).experts).any()


def test_every_pass_is_played_and_all_tokens_are_committed() -> None:
    replay = BankReplay(SHAPE)
    windows = list(passes(replay, 4))
    assert sum(window.committed for window in windows) == 3 * 200
    assert all(window.approximate and window.gamma <= 4 for window in windows)
    assert replay.prefill(0) is None and len(replay.prompt(0)) == 0


@pytest.mark.parametrize("reuse", [0.0, 0.5, 1.0])
def test_rows_keep_their_experts_as_often_as_asked(reuse: float) -> None:
    shape = replace(SHAPE, reuse=reuse, tokens=2000, bank=200, experts=64)
    experts = np.sort(BankReplay(shape).arrays(0).experts, axis=2)
    same = (experts[1:] == experts[:-1]).all(axis=2).mean()
    # Two draws can also give the same set.
    assert reuse - 0.03 <= same <= reuse + 0.05


@pytest.mark.parametrize("acceptance", [0.0, 0.6])
def test_drafts_are_accepted_as_often_as_asked(acceptance: float) -> None:
    shape = replace(SHAPE, acceptance=acceptance, tokens=4000)
    longest = BankReplay(shape).arrays(0).longest
    assert (longest >= 1).mean() == pytest.approx(acceptance, abs=0.03)
    assert longest.max() <= shape.gamma_limit


def test_predictions_are_the_next_layer_and_none_for_the_last() -> None:
    arrays = BankReplay(SHAPE).arrays(0)
    assert arrays.next_layer is not None
    np.testing.assert_array_equal(arrays.next_layer[0][:, :-1], arrays.experts[:, 1:])
    assert (arrays.next_layer[0][:, -1] == 0xFFFF).all()
