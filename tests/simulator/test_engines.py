"""Which engine plays a policy, and what it says about it."""

import pytest

from policies.errors import UserError
from policies.zoo import lru_fetch
from simulator.engines import choose_engine, simulate
from simulator.settings import SimulationSettings
from tests.policies.plain_lru import PlainLru
from tests.simulator.equal_runs import assert_equal_tables
from tests.simulator.scenarios import long_costs
from traces.runlog_schema import TABLES
from traces.synthetic_replay import BankReplay, BankShape

REPLAY = BankReplay(BankShape(layers=2, experts=8, top_k=2, requests=2, tokens=20, bank=6))
SETTINGS = SimulationSettings(gamma=2, slots=8, warmup_requests=0)


def test_auto_compiles_what_is_made_of_parts() -> None:
    choice = choose_engine(lru_fetch())
    assert choice.engine == "compiled"
    assert choice.reason == "policy lru_fetch is made of compiled parts"


def test_auto_sends_plain_python_to_the_reference() -> None:
    choice = choose_engine(PlainLru())
    assert choice.engine == "reference" and "is plain Python" in choice.reason
    assert PlainLru().name in choice.reason


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_what_was_asked_for_is_taken(engine: str) -> None:
    choice = choose_engine(lru_fetch(), engine)  # type: ignore[arg-type]
    assert (choice.engine, choice.reason) == (engine, "as asked")


def test_the_compiled_engine_cannot_call_python() -> None:
    with pytest.raises(UserError, match=r"engine=compiled.*plain Python.*engine=auto"):
        choose_engine(PlainLru(), "compiled")


def test_an_unknown_engine_is_refused_with_the_list() -> None:
    with pytest.raises(UserError, match="engine=fast: there are auto, reference, compiled"):
        choose_engine(lru_fetch(), "fast")  # type: ignore[arg-type]


def test_the_run_log_names_the_engine_that_played() -> None:
    logs = {
        engine: simulate(REPLAY, lru_fetch(), long_costs(4), SETTINGS, engine=engine)
        for engine in ("auto", "reference", "compiled")
    }
    named = {engine: log.info.engine for engine, log in logs.items()}
    assert named["auto"] == named["compiled"] != named["reference"]
    for table in TABLES:
        assert_equal_tables(getattr(logs["auto"], table), getattr(logs["reference"], table), table)


def test_a_plain_policy_is_played_by_the_reference() -> None:
    plain = simulate(REPLAY, PlainLru(), long_costs(4), SETTINGS)
    composed = simulate(REPLAY, lru_fetch(), long_costs(4), SETTINGS)
    assert plain.info.engine != composed.info.engine
    assert_equal_tables(plain.copies, composed.copies, "copies")
