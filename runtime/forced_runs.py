"""Runs several policies on the same forced passes, interleaved, so that drift hits all alike."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from policies.costs import CostTable
from runtime.engine_settings import EngineSettings
from runtime.forced_engine import ForcedEngine
from runtime.random_model import RandomModel
from traces.replay import Replay
from traces.runlog import RunLog

Makers = Mapping[str, Callable[[], Any]]
Tick = Callable[[str], None]


def run_policies(
    model: RandomModel,
    replay: Replay,
    makers: Makers,
    costs: Mapping[str, CostTable],
    settings: EngineSettings,
    repeats: int,
    tick: Tick,
    seed: int = 0,
) -> dict[str, list[RunLog]]:
    """Run logs by name of policy, `repeats` each, every round in a new random order. `costs`: what
    each policy is told of time, and padded to where the settings say so. `tick` after each run.
    """
    order = random.Random(seed)
    logs: dict[str, list[RunLog]] = {name: [] for name in makers}
    for _ in range(repeats):
        names = list(makers)
        order.shuffle(names)
        for name in names:
            logs[name].append(run_policy(model, replay, makers[name](), costs[name], settings))
            tick(name)
    return logs


def run_policy(
    model: RandomModel, replay: Replay, policy: Any, costs: CostTable, settings: EngineSettings
) -> RunLog:
    """The run log of one run."""
    with ForcedEngine(model, replay, policy, costs, settings) as engine:
        engine.play()
    return engine.runlog()
