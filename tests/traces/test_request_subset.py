"""Requests divided: nothing lost, nothing twice; a part plays as the requests themselves."""

from dataclasses import replace

import pytest

from policies.zoo import ZOO
from simulator.settings import SimulationSettings
from simulator.totals import Totals, simulate_totals
from tests.simulator.scenarios import long_costs
from traces.request_subset import RequestSubset, split_requests
from traces.synthetic_replay import BankReplay, BankShape

SHAPE = BankShape(layers=4, experts=16, top_k=2, requests=6, tokens=40)
SETTINGS = SimulationSettings(gamma=3, slots=16)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.4, 0.5, 0.9])
@pytest.mark.parametrize("count", [1, 4, 10, 16])
def test_every_request_is_on_one_side(share: float, count: int) -> None:
    fit, held = split_requests(range(count), share)
    assert sorted(fit + held) == list(range(count))
    assert len(held) == int(count * share + 1e-9)


def test_sides_are_spread_over_the_trace() -> None:
    assert split_requests(range(10), 0.4) == ((0, 1, 3, 5, 6, 8), (2, 4, 7, 9))


def test_foreign_requests_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[9\]"):
        RequestSubset(BankReplay(SHAPE, 1), (0, 9))


def play(replay, **changes) -> Totals:
    return simulate_totals(
        replay, ZOO["spac"](), long_costs(4), replace(SETTINGS, **changes),
    )  # fmt: skip


def test_the_first_requests_are_those_that_requests_names() -> None:
    replay = BankReplay(SHAPE, 1)
    assert play(RequestSubset(replay, (0, 1, 2))) == play(replay, requests=3)
    assert play(RequestSubset(replay, (0, 3, 5))) != play(replay, requests=3)


def test_sums_after_each_request_grow_to_the_whole() -> None:
    replay, seen = BankReplay(SHAPE, 1), []
    whole = simulate_totals(
        replay, ZOO["spac"](), long_costs(4), SETTINGS,
        after_request=lambda totals: seen.append(replace(totals)),
    )  # fmt: skip
    assert len(seen) == 6 and seen[0].passes == 0 and seen[-1] == whole == play(replay)
    for place in range(1, 6):
        assert seen[place] == play(replay, requests=place + 1)


def test_a_run_can_be_stopped_after_a_request() -> None:
    class Enough(Exception):
        pass

    def stop(totals: Totals) -> None:
        if totals.passes:
            raise Enough

    with pytest.raises(Enough):
        simulate_totals(
            BankReplay(SHAPE, 1), ZOO["spac"](), long_costs(4), SETTINGS, after_request=stop
        )
