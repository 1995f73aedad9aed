"""Forced routing and the simulator, told the same trace in logical time, make identical plans."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from experiments.logical_time import instant_copies
from policies.zoo.all_cpu import all_cpu
from policies.zoo.freetoken import freetoken
from policies.zoo.hybrimoe import hybrimoe
from policies.zoo.lru_fetch import lru_fetch
from policies.zoo.ours import ours
from policies.zoo.spac import spac
from runtime.engine_settings import EngineSettings
from runtime.forced_engine import ForcedEngine
from runtime.model_shape import model_shape
from runtime.plans import compare_plans, plans_of
from runtime.random_model import RandomModel, random_model
from runtime.standin import standin
from simulator.engines import simulate
from simulator.settings import SimulationSettings
from traces.mapped_replay import MappedReplay
from traces.metrics import metrics
from traces.reader import open_trace
from traces.replay import open_replay

torch.set_num_threads(1)
SHAPE = model_shape(
    "tiny", 10, 128, 4, hidden=16, expert_width=8, layer_parameters=3000, pass_parameters=800,
    key_width=8, distinct=1,
)  # fmt: skip
SETTINGS = EngineSettings(slots=200, staging=2, gamma=3, mode="logical")
POLICIES: dict[str, Callable[[], Any]] = {
    "all_cpu": all_cpu, "lru_fetch": lru_fetch, "hybrimoe": hybrimoe, "freetoken": freetoken,
    "spac": spac, "ours": ours,
}  # fmt: skip
TRACE = Path(__file__).parents[2] / "traces" / "data" / "code"


@pytest.fixture(scope="module")
def model() -> RandomModel:
    device = standin(bytes_per_second=1e9, latency_ns=0)
    yield random_model(SHAPE, torch.float32, device, SETTINGS.slots, SETTINGS.staging)
    device.close()


@pytest.mark.parametrize("name", POLICIES)
def test_plans_hits_and_bytes_are_identical(name: str, model: RandomModel) -> None:
    replay = MappedReplay(open_replay(open_trace(TRACE)), SHAPE.info(torch.float32), requests=1)
    size = model.arena.layout.expert_bytes
    costs = instant_copies(SETTINGS.gamma + 1, size)
    settings = SimulationSettings(
        gamma=SETTINGS.gamma, slots=SETTINGS.slots, staging=SETTINGS.staging, warmup_requests=0
    )
    simulated = simulate(replay, POLICIES[name](), costs, settings)
    with ForcedEngine(model, replay, POLICIES[name](), costs, replace(SETTINGS)) as engine:
        engine.play()
    measured = engine.runlog()
    comparison = compare_plans(plans_of(simulated), plans_of(measured))
    assert comparison.identical, comparison.first_difference
    assert comparison.decisions > 300
    theirs, mine = metrics(simulated), metrics(measured)
    assert (theirs.bytes_copied, theirs.hit_rate_per_expert) == (
        mine.bytes_copied, mine.hit_rate_per_expert,
    )  # fmt: skip
