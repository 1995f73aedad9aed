"""Random runs for comparing the engines: small shapes, awkward costs, every kind of trace."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from policies.composed import ComposedPolicy
from policies.conformance import plain_costs
from policies.costs import CostTable
from policies.errors import UserError
from policies.parts import FetchMisses, FixedWindow, NextLayer, NextUse, Recency, Upcoming
from policies.session import IllegalPlan
from policies.zoo import ZOO
from simulator.settings import SimulationSettings
from tests.simulator.compositions import BALANCERS, ESTIMATORS, MOVERS
from tests.traces.trace_samples import cut_windows, dense_trace, text_trace, write_trace
from traces.reader import Trace
from traces.replay import Replay, open_replay
from traces.runlog import RunLog
from traces.synthetic import SyntheticShape, random_dense, synthetic_manifest

ROWS_MAX = 16


@dataclass(frozen=True)
class Scenario:
    """One run, all but the policy."""

    replay: Replay
    costs: CostTable
    settings: SimulationSettings


def scenario(seed: int, folder: Path) -> Scenario:
    """Scenario number `seed`; its trace is written below `folder`."""
    random = np.random.default_rng(seed)
    pick = random.choice
    experts = int(pick([4, 8, 16]))
    shape = SyntheticShape(
        layers=int(pick([1, 2, 3, 5])),
        experts=experts,
        top_k=int(pick([1, 2, min(4, experts)])),
        requests=int(random.integers(1, 4)),
        prompt_tokens=int(pick([1, 3, 9])),
        tokens=int(random.integers(1, 14)),
        reuse=float(pick([0.0, 0.4, 0.9])),
        acceptance=float(pick([0.0, 0.6, 0.95])),
        lookahead=3,
        weights=True,
    )
    gamma_max = int(pick([0, 1, 3, 5]))
    kind = str(pick(["dense", "dense", "windowed", "text"]))
    trace = written_trace(folder / f"{kind}-{seed}", kind, shape, gamma_max, seed)
    replay = open_replay(trace, acceptance=[0.9, 0.5] if kind == "text" else None, seed=seed)
    gamma = gamma_max if kind == "windowed" else int(random.integers(0, gamma_max + 1))
    total = shape.layers * experts
    settings = SimulationSettings(
        gamma=gamma,
        slots=int(random.integers(1, total + 1)),
        staging=int(pick([1, 1, 2, 3])),
        launch=pick(["early", "late"]),
        lanes=pick(["concurrent", "serial"]),
        warmup_requests=int(random.integers(0, 2)),
        cold_start=bool(random.random() < 0.3),
        requests=None if random.random() < 0.7 else 1,
    )
    return Scenario(replay, random_costs(random), settings)


def written_trace(path: Path, kind: str, shape: SyntheticShape, gamma_max: int, seed: int) -> Trace:
    """A synthetic trace of `kind` in directory `path`, in several parts."""
    if kind == "text":
        return text_trace(path, shape, seed)
    if kind == "dense":
        return dense_trace(path, gamma_max, shape, seed, rows_per_part=40)
    rows = cut_windows(random_dense(shape, gamma_max, seed), gamma_max, gamma_max)
    return write_trace(path, synthetic_manifest(shape, "windowed", gamma_max), rows)


def random_costs(random: np.random.Generator) -> CostTable:
    """Times from a coarse raster, so that events coincide, or from 0; links from idle to full."""
    raster = int(random.choice([1, 10, 50]))

    def some(highest: int) -> int:
        return raster * int(random.integers(0, highest // raster + 1))

    def rising(first: int, step: int) -> np.ndarray:
        steps = raster * random.integers(0, step // raster + 1, ROWS_MAX)
        return np.concatenate([[0], some(first) + np.cumsum(steps)]).astype(np.int64)

    table = CostTable(
        cpu_ns=rising(200, 100),
        gpu_ns=rising(100, 20),
        dense_ns=rising(200, 10),
        context_ns_per_1024=int(random.choice([0, 700])),
        router_ns=some(50),
        d2h_ns=some(50),
        dispatch_ns=some(50),
        return_ns=some(100),
        copy_latency_ns=some(50),
        copy_ns=max(1, some(int(random.choice([50, 300, 2000])))),
        contention=int(random.choice([1, 300, 1000, 1024])),
        draft_step_ns=some(300),
        pass_ns=some(200),
        decision_layer_ns=some(100),
        decision_leave_ns=some(100),
        decision_draft_ns=some(400),
        needs_ns=np.array([some(30) for _ in range(5)], np.int64),
        expert_bytes=1 << 20,
    )
    if random.random() < 0.6:
        return table
    # Prefill streams some experts and computes the others: the link pauses while the CPU works.
    gpu_ns = table.gpu_ns + 40 * (np.arange(ROWS_MAX + 1) > 0)
    streamed = table.copy_latency_ns + table.copy_ns + gpu_ns
    cpu_ns = np.maximum.accumulate(streamed + 100 * (np.arange(ROWS_MAX + 1) - 2))
    return table._replace(gpu_ns=gpu_ns, cpu_ns=np.maximum(cpu_ns * (streamed > streamed[0]), 0))


def long_costs(rows: int) -> CostTable:
    """Times like those of a desktop machine, for passes of up to `rows` rows."""
    tokens = np.arange(rows + 1, dtype=np.int64)
    some = (tokens > 0).astype(np.int64)
    return plain_costs()._replace(
        cpu_ns=145_000 * tokens, gpu_ns=20_000 * some + 100 * tokens, dense_ns=100_000 * some
    )


class Listening(ComposedPolicy):
    """A composition that pays for drafted tokens without reading them."""

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | {"draft_tokens"}


def fetch_predicted() -> ComposedPolicy:
    """Misses are fetched, and prefetched in another order than that of their numbers."""
    return Listening("fetch_predicted", Recency(), FetchMisses(), NextLayer(1), "count")


def composed(seed: int) -> ComposedPolicy:
    """Any composition of parts."""
    random = np.random.default_rng(1_000_000 + seed)

    def pick(parts: Sequence[Any]) -> Any:
        return parts[random.integers(len(parts))]

    return ComposedPolicy(
        "composed",
        pick((*ESTIMATORS, NextUse(), Upcoming())),
        pick(BALANCERS),
        pick(MOVERS),
        signal=pick(("count", "bit", "mass")),
        quota=pick(("per_layer", "pool")),
    )


def policy_for(name: str, run: Scenario, seed: int) -> ComposedPolicy:
    """A fresh policy, of the zoo or above; in every third scenario with a window shorter than the
    run's."""
    if name == "composed":
        policy = composed(seed)
    else:
        policy = fetch_predicted() if name == "fetch_predicted" else ZOO[name]()
    if seed % 3 == 0 and run.replay.fixed_gamma is None:
        policy.window = FixedWindow(1)
    return policy


def outcome(engine: Callable[..., RunLog], name: str, run: Scenario, seed: int) -> RunLog | str:
    """The run log that `engine` makes, or the words in which it refuses run or plan."""
    try:
        return engine(run.replay, policy_for(name, run, seed), run.costs, run.settings)
    except (UserError, IllegalPlan) as error:
        return f"{type(error).__name__}: {error}"
