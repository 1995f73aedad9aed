"""The scene that engines, caches and decisions are timed on: generated routing, real costs."""

from dataclasses import dataclass, replace

from experiments.benchmarks.measures import Bench
from experiments.machine import Capacity
from experiments.setting import Setting
from policies.costs import CostTable
from simulator.settings import SimulationSettings
from traces.held_replay import HeldReplay
from traces.synthetic_replay import BankReplay

CACHE_RATIO = 0.17
REQUEST_TOKENS = 512
ASSUMED_FOR_ANY = "any"  # decision times of the profile do not depend on the policy


@dataclass(frozen=True)
class Scene:
    """A replay held in memory, so that reading it is not timed."""

    replay: HeldReplay
    costs: CostTable
    settings: SimulationSettings


def make_scene(bench: Bench, passes: int) -> Scene:
    """A scene of about `passes` passes at the window of `bench`; every request counts."""
    size = bench.size
    mean = 1.0 / (1.0 - size.shape.acceptance)  # tokens committed by a pass with a long window
    tokens = max(8, round(passes * mean))
    requests = max(1, round(tokens / REQUEST_TOKENS))
    shape = replace(size.shape, requests=requests, tokens=-(-tokens // requests))
    replay = HeldReplay(BankReplay(shape))
    for request in replay.request_ids:
        replay.arrays(request)
    setting = Setting(
        bench.machine, Capacity(cache_ratio=CACHE_RATIO), size.gamma, 4, "late", "concurrent", None
    )
    settings = replace(setting.simulation(replay.model), warmup_requests=0)
    costs = setting.costs(replay, ASSUMED_FOR_ANY)
    return Scene(replay, costs, settings)
