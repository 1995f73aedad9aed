"""MistakenPolicy: without mistakes it is the compiled policy to the nanosecond; mistakes are what
its docstring says."""

from pathlib import Path

import numpy as np
import pytest

from experiments.studies.mistaken import MistakenPolicy
from policies.api import Shape
from policies.composed import ComposedPolicy
from policies.costs import CostTable
from policies.parts import Decayed, Threshold, Unified
from policies.zoo import spac
from simulator.cost_tables import cost_table
from simulator.draft_profile import draft_profile
from simulator.hardware import hardware_profile
from simulator.model_profile import model_profile
from simulator.reference import simulate
from simulator.settings import SimulationSettings
from tests.architecture.test_configs import content
from traces.reader import open_trace
from traces.replay import Replay, open_replay
from traces.runlog import RunLog

SETTINGS = SimulationSettings(gamma=3, slots=12)


@pytest.fixture
def replay(dense_trace: Path) -> Replay:
    return open_replay(open_trace(dense_trace))


@pytest.fixture
def costs(replay: Replay) -> CostTable:
    return cost_table(
        hardware_profile(content("hardware", "rtx4090")),
        model_profile(content("model", "qwen3-30b-a3b")),
        draft_profile(content("draft", "qwen3-4b-fp8")),
        rows_max=8,
        trace_layers=replay.model.layers,
    )


def levels() -> ComposedPolicy:
    return spac(calibrate=False)


def decayed() -> ComposedPolicy:
    return ComposedPolicy("sum", Decayed(0.8), Threshold(), Unified(), signal="bit", quota="pool")


def assert_equal(one: RunLog, other: RunLog) -> None:
    for table in ("passes", "layers", "copies", "drafts"):
        left, right = getattr(one, table), getattr(other, table)
        assert len(left) == len(right)
        for column in left.columns:
            for a, b in zip(left[column], right[column], strict=True):
                assert np.array_equal(a, b), (table, column)


@pytest.mark.parametrize("make", [levels, decayed])
def test_without_mistakes_nothing_changes(make, replay: Replay, costs: CostTable) -> None:
    plain = simulate(replay, make(), costs, SETTINGS)
    assert len(plain.copies) > 20
    assert_equal(plain, simulate(replay, MistakenPolicy(make(), 0.0, 0), costs, SETTINGS))


def test_seed_and_rate_decide(replay: Replay, costs: CostTable) -> None:
    one, same = (simulate(replay, MistakenPolicy(levels(), 0.5, 3), costs, SETTINGS)
                 for _ in range(2))  # fmt: skip
    assert_equal(one, same)
    plain = simulate(replay, levels(), costs, SETTINGS)
    assert plain.passes["end_ns"].max() != one.passes["end_ns"].max()


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_mistakes_swap_active_for_inactive(rate: float, costs: CostTable) -> None:
    policy = MistakenPolicy(levels(), rate, 7)
    policy.reset(Shape(2, 64, 4, 16, 4, 3, False), costs)
    active, swapped = np.arange(0, 40, 2), 0
    for _ in range(200):
        reported = policy._mistake(active)
        assert len(set(reported[active])) == len(active)  # no two become one
        wrong = reported[active] != active
        assert not np.isin(reported[active][wrong], active).any()
        swapped += int(wrong.sum())
    assert swapped / (200 * len(active)) == pytest.approx(rate, abs=0.03)
