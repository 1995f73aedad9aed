"""Laws that hold for every policy, machine and trace: random small runs, audited from their
logs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, strategies
from hypothesis import settings as hypothesis_settings

from policies import parts
from policies.composed import ComposedPolicy
from simulator.exact_bound import lower_bound
from simulator.reference import simulate
from simulator.settings import SimulationSettings
from tests.simulator.audit import audit
from tests.simulator.compositions import BELADY, ESTIMATORS, cost_tables, policies, replays
from tests.simulator.scenes import ListReplay, round_costs
from traces.runlog import RunLog

RANDOM = hypothesis_settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def any_settings(draw: Any, replay: ListReplay, launch: str) -> SimulationSettings:
    total = replay.model.layers * replay.model.experts
    return SimulationSettings(
        gamma=replay.gamma_limit,
        slots=draw(strategies.integers(1, total)),
        staging=draw(strategies.integers(1, 3)),
        launch=launch,
        lanes=draw(strategies.sampled_from(("concurrent", "serial"))),
        warmup_requests=0,
        cold_start=draw(strategies.booleans()),
    )


def decode_ns(log: RunLog) -> int:
    decode = log.passes[log.passes["phase"] == 1]
    return int((decode["end_ns"] - decode["begin_ns"]).sum())


@RANDOM
@given(strategies.data())
def test_every_run_obeys_the_machine_and_the_bound(data: Any) -> None:
    replay, costs = data.draw(replays()), data.draw(cost_tables())
    launch = data.draw(strategies.sampled_from(("early", "late")))
    chosen = any_settings(data.draw, replay, launch)
    policy = data.draw(policies(early=launch == "early"))
    log = simulate(replay, policy, costs, chosen)
    if not chosen.cold_start:  # a cold start forgets slots that the audit still holds
        audit(log, costs, chosen)
    assert decode_ns(log) >= lower_bound(replay, costs, chosen)


def hits(replay: ListReplay, policy: ComposedPolicy, slots: int) -> int:
    """Hits of all decode passes where a copy takes 1 ns."""
    chosen = SimulationSettings(gamma=replay.gamma_limit, slots=slots, warmup_requests=0)
    log = simulate(replay, policy, round_costs(copy_ns=1, copy_latency_ns=0), chosen)
    decode = log.passes["pass_index"][log.passes["phase"] == 1]
    counted = log.layers[log.layers["pass_index"].isin(decode)]
    return int(np.concatenate(list(counted["hit"])).sum())


@RANDOM
@given(strategies.data())
def test_belady_hits_most(data: Any) -> None:
    """A theorem for one expert per layer and pass. With more it is none: an expert that this pass
    reads cannot be dropped for one that is needed sooner."""
    replay = data.draw(replays(single=True))
    slots = data.draw(strategies.integers(1, replay.model.layers * replay.model.experts))
    estimator = data.draw(strategies.sampled_from(ESTIMATORS))
    bypass = data.draw(strategies.booleans())
    rival = ComposedPolicy("rival", estimator, parts.FetchMisses(bypass=bypass), parts.Still())
    assert hits(replay, ComposedPolicy("belady", *BELADY), slots) >= hits(replay, rival, slots)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_belady_hits_most_in_windows_of_some_length(estimator: parts.Part) -> None:
    order = np.random.default_rng(3).random((60, 3, 2, 16)).argsort(axis=3)[..., :2]
    replay = ListReplay([list(order)], experts=16)
    rival = ComposedPolicy("rival", estimator, parts.FetchMisses(), parts.Still())
    assert hits(replay, ComposedPolicy("belady", *BELADY), 12) > hits(replay, rival, 12)


def test_equal_inputs_give_equal_bytes(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    order = generator.random((30, 3, 4, 8)).argsort(axis=3)[..., :2]
    replay = ListReplay([list(order[:15]), list(order[15:])], experts=8, accepted=1)
    chosen = SimulationSettings(gamma=2, slots=9)

    def written(name: str) -> dict[str, bytes]:
        policy = ComposedPolicy(
            "spac", parts.Inertia(), parts.Threshold(), parts.Unified(), quota="pool"
        )
        log = simulate(replay, policy, round_costs(), chosen, path=tmp_path / name)
        assert log.info.complete
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        return {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in files}

    first, second = written("first"), written("second")
    assert len(first) > 4
    assert first == second
