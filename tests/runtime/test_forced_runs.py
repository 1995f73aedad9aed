"""Several policies on the same passes: as many runs as asked, each policy fresh, order mixed."""

from pathlib import Path

import torch
from offload_setup import fast_standin, flat_costs

from policies.zoo.all_cpu import all_cpu
from policies.zoo.lru_cpu import lru_cpu
from runtime.engine_settings import EngineSettings
from runtime.forced_runs import run_policies
from runtime.model_shape import model_shape
from runtime.random_model import random_model
from traces.mapped_replay import MappedReplay
from traces.metrics import metrics
from traces.reader import open_trace
from traces.replay import open_replay

torch.set_num_threads(1)
TRACE = Path(__file__).parents[2] / "traces" / "data" / "code"


def test_runs_are_repeated_and_interleaved() -> None:
    shape = model_shape("tiny", 2, 64, 4, 16, 8, 2000, 400, 8, distinct=1)
    device, told = fast_standin(), []
    settings = EngineSettings(slots=30, staging=1, gamma=2)
    model = random_model(shape, torch.float32, device, settings.slots, settings.staging)
    replay = MappedReplay(open_replay(open_trace(TRACE)), shape.info(torch.float32), requests=1)
    makers = {"all_cpu": all_cpu, "lru_cpu": lru_cpu}
    costs = dict.fromkeys(makers, flat_costs())
    logs = run_policies(model, replay, makers, costs, settings, 3, told.append)
    device.close()
    assert sorted(told) == ["all_cpu"] * 3 + ["lru_cpu"] * 3
    assert {name: len(runs) for name, runs in logs.items()} == {"all_cpu": 3, "lru_cpu": 3}
    rates = [metrics(log).hit_rate_per_expert for log in logs["lru_cpu"]]
    assert min(rates) > 0.05 and all(log.info.policy == "lru_cpu" for log in logs["lru_cpu"])
    tokens = {metrics(log).committed_tokens for runs in logs.values() for log in runs}
    assert len(tokens) == 1
