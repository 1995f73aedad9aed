"""Speed under wrong predictions: MoE-SpAc's balancer and mover behind two estimators, each fed with
the count or with the bit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from experiments.setting import Setting
from experiments.studies.mistaken import MistakenPolicy
from experiments.trace_choice import Workload
from policies.composed import ComposedPolicy
from policies.parts import Decayed, Inertia, Part, Threshold, Unified
from policies.zoo.all_cpu import all_cpu
from simulator.engines import simulate
from traces.metrics import metrics

LEVELS = 5
# An `up` of 2 would never let a bit raise a level; the count keeps SpAc's own value.
ESTIMATORS: dict[tuple[str, str], Part] = {
    ("levels", "count"): Inertia(LEVELS, up=2, down=1, calibrate=False),
    ("levels", "bit"): Inertia(LEVELS, up=1, down=1, calibrate=False),
    ("decayed sum", "count"): Decayed(0.8),
    ("decayed sum", "bit"): Decayed(0.8),
}


@dataclass(frozen=True)
class ErrorRun:
    """One run. `estimator` "" stands for no prediction at all: everything on the CPU."""

    workload: Workload
    setting: Setting
    estimator: str
    signal: str
    rate: float
    seed: int

    def policy(self) -> Any:
        """The policy of this run."""
        if not self.estimator:
            return all_cpu()
        part = ESTIMATORS[self.estimator, self.signal]
        name = f"{self.estimator} of {self.signal}"
        inner = ComposedPolicy(
            name, part, Threshold(LEVELS), Unified(), signal=self.signal, quota="pool"
        )
        return MistakenPolicy(inner, self.rate, self.seed)


def plan_errors(
    workload: Workload, setting: Setting, rates: list[float], seed: int
) -> list[ErrorRun]:
    """The runs of one workload in the order of the table."""
    runs = [ErrorRun(workload, setting, "", "", 0.0, seed)]
    for estimator, signal in ESTIMATORS:
        runs += [ErrorRun(workload, setting, estimator, signal, rate, seed) for rate in rates]
    return runs


def error_rows(runs: list[ErrorRun]) -> Iterator[dict[str, Any]]:
    """A row for each run as it finishes."""
    for run in runs:
        replay, setting = run.workload.replay, run.setting
        policy = run.policy()
        costs = setting.costs(replay, policy.name)
        log = simulate(replay, policy, costs, setting.simulation(replay.model))
        figures = metrics(log)
        yield {
            "workload": run.workload.name,
            "approximate": replay.approximate,
            "estimator": run.estimator or "none (all_cpu)",
            "signal": run.signal or "none",
            "error_rate": run.rate,
            "tokens_per_second": figures.tokens_per_second,
            "hit_rate_per_token": figures.hit_rate_per_token,
            "prefetches": figures.prefetches,
            "prefetches_useful": figures.prefetches_useful,
            "bytes_copied": figures.bytes_copied,
            "passes": figures.passes,
        }
