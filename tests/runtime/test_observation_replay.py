"""Observation replay: what the policy was told decides its plans, and nothing else does."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import LoadedPair
from offload_setup import ForcedPolicy, fast_standin, flat_costs, tiny_engine

from policies.errors import UserError
from policies.session import IllegalPlan
from policies.zoo.binary_prefetch import binary_prefetch
from policies.zoo.lru_fetch import lru_fetch
from policies.zoo.spac import spac
from runtime.engine import OffloadedEngine
from runtime.observation_replay import prove_observation_replay, replay_observations
from runtime.observations import (
    FILE_NAME,
    Observation,
    read_observations,
    write_observations,
)
from runtime.plans import PlanComparison, compare_plans, plans_of
from traces.runlog import read_runlog

PROMPT = [10, 20, 30, 40, 50]


def run(tiny: LoadedPair, policy: Any, **changes: Any) -> OffloadedEngine:
    """Two requests over a link so slow that landings are a matter of timing."""
    device = fast_standin(rate=20e6)
    with tiny_engine(tiny.path, policy, device, **changes) as engine:
        for _ in range(2):
            list(engine.generate(PROMPT, 16))
    return engine


def prove(engine: OffloadedEngine, policy: Any) -> PlanComparison:
    recorded = plans_of(engine.runlog())
    shape = engine.session.shape
    return prove_observation_replay(policy, shape, flat_costs(), engine.observations, recorded)


@pytest.mark.parametrize(
    "make",
    [
        lru_fetch,
        spac,
        binary_prefetch,
        lambda: spac(signal="mass"),
        lambda: ForcedPolicy("MIXED", 3),
        lambda: ForcedPolicy("GPU", 4),
    ],
    ids=["lru_fetch", "spac", "binary_prefetch", "spac by mass", "mixed", "gpu"],
)
@pytest.mark.parametrize("mode", ["live", "logical"])
def test_a_fresh_policy_makes_the_same_plans(make: Any, mode: str, tiny: LoadedPair) -> None:
    proof = prove(run(tiny, make(), mode=mode), make())
    assert proof.identical, proof.first_difference
    assert proof.decisions > 100


class Impatient(ForcedPolicy):
    """Has a hidden input: the clock."""

    def enter_layer(self, routing: Any, view: Any) -> Any:
        self.random_ = np.random.default_rng(time.perf_counter_ns())
        return super().enter_layer(routing, view)


def test_a_hidden_input_is_found(tiny: LoadedPair) -> None:
    try:
        proof = prove(run(tiny, Impatient("MIXED")), Impatient("MIXED"))
    except IllegalPlan:
        return  # its other plans did not even fit the recorded landings
    assert not proof.identical
    assert proof.different > 0
    assert "|" in proof.first_difference


def test_logical_time_gives_the_same_plans_at_any_link_speed(tiny: LoadedPair) -> None:
    plans = []
    for rate in (None, 20e6):
        device = fast_standin(rate=rate)
        with tiny_engine(tiny.path, spac(), device, mode="logical") as engine:
            list(engine.generate(PROMPT, 40))
        plans.append(plans_of(engine.runlog()))
    assert compare_plans(*plans).identical


def test_observations_survive_the_disk(tiny: LoadedPair, tmp_path: Path) -> None:
    with tiny_engine(tiny.path, binary_prefetch(), log=tmp_path / "run") as engine:
        list(engine.generate(PROMPT, 12))
    stored = read_observations(tmp_path / "run" / FILE_NAME)
    for one, other in zip(engine.observations, stored, strict=True):
        assert (one.call, one.number, one.token, one.landed, one.prompt) == (
            other.call,
            other.number,
            other.token,
            other.landed,
            other.prompt,
        )
        for name in ("experts", "weights", "predicted"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    replayed = replay_observations(binary_prefetch(), engine.session.shape, flat_costs(), stored)
    assert compare_plans(plans_of(read_runlog(tmp_path / "run")), replayed).identical


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    write_observations(tmp_path / "ok.parquet", [Observation(0, prompt=(1, 2))])
    assert read_observations(tmp_path / "ok.parquet")[0].prompt == (1, 2)
    (tmp_path / "bad.parquet").write_text("no parquet")
    with pytest.raises(UserError, match="cannot read observations"):
        read_observations(tmp_path / "bad.parquet")


def test_plans_of_different_length_differ() -> None:
    assert not compare_plans([], []).identical
