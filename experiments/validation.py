"""One table of a validation: policies predicted by the simulator and measured by the engine."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from experiments.forced_choice import ForcedChoice
from experiments.logical_time import instant_copies
from experiments.policy_choice import PolicyChoice
from policies.costs import CostTable
from runtime.forced_runs import run_policies, run_policy
from runtime.random_model import RandomModel
from simulator.engines import simulate
from simulator.hardware import DecisionTimes, HardwareProfile
from traces.agreement import Agreement, agreement, kendall_tau, smallest_gap
from traces.metrics import metrics
from traces.runlog import RunLog

PADDED, UNPADDED = "padded", "unpadded"
Tick = Callable[[str], None]


@dataclass(frozen=True)
class Logical:
    """A policy in logical time: hits and bytes of simulator and engine, which must be equal."""

    hits: tuple[float, float]
    bytes: tuple[int, int]

    @property
    def exact(self) -> bool:
        """Equal to the last byte."""
        return self.hits[0] == self.hits[1] and self.bytes[0] == self.bytes[1]


@dataclass(frozen=True)
class Validation:
    """`name`: padded or unpadded; `goal`: error that is aimed at, None where only order and overlap
    are tested; `load`: the machine's load average meanwhile, which shows who else was at work;
    `seen`: what the calibration has used as well, so that predicting it is no test.
    """

    name: str
    note: str
    agreements: Sequence[Agreement]
    logical: Mapping[str, Logical]
    goal: float | None
    load: float = 0.0
    seen: Sequence[str] = ()

    @property
    def tau(self) -> float | None:
        """Rank agreement of predicted and measured times; None where one side is all equal."""
        found = kendall_tau(*self._times())
        return None if np.isnan(found) else found

    @property
    def gap(self) -> float | None:
        """See traces.agreement.smallest_gap."""
        return smallest_gap(*self._times())

    @property
    def worst(self) -> Agreement:
        """The policy whose time is predicted worst."""
        return max(self.agreements, key=lambda one: abs(one.error))

    def rows(self) -> list[dict[str, Any]]:
        """One row per policy; what is undefined is None."""
        return [
            {"table": self.name}
            | asdict(one)
            | {
                "error": one.error,
                "noise": one.noise,
                "hit_difference_points": one.hit_difference,
                "bytes_difference": one.bytes_difference,
                "logical_exact": self.logical[one.policy].exact,
            }
            for one in self.agreements
        ]

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "note": self.note,
            "kendall_tau": self.tau,
            "smallest_gap_ordered_right": self.gap,
            "mean_absolute_error": float(np.mean([abs(one.error) for one in self.agreements])),
            "worst_error": {"policy": self.worst.policy, "error": self.worst.error},
            "goal": self.goal,
            "load_average": self.load,
            "cores": os.cpu_count(),
            "policies": [
                {key: value for key, value in row.items() if key != "table"} for row in self.rows()
            ],
        }

    def _times(self) -> tuple[list[float], list[float]]:
        return (
            [one.predicted_seconds for one in self.agreements],
            [one.measured_seconds for one in self.agreements],
        )


def run_logical(
    choice: ForcedChoice, model: RandomModel, policies: Sequence[PolicyChoice], tick: Tick
) -> dict[str, Logical]:
    """Each policy once in logical time, in both worlds. Also compiles what is timed later."""
    found = {}
    settings = replace(choice.settings, mode="logical", paced=False)
    costs = instant_copies(settings.gamma + 1, choice.expert_bytes)
    for policy in policies:
        simulated = simulate(choice.replay, policy.build(), costs, choice.simulation())
        measured = run_policy(model, choice.replay, policy.build(), costs, settings)
        theirs, mine = metrics(simulated), metrics(measured)
        found[policy.label] = Logical(
            (theirs.hit_rate_per_expert, mine.hit_rate_per_expert),
            (theirs.bytes_copied, mine.bytes_copied),
        )
        tick(policy.label)
    return found


def decision_times(log: RunLog) -> DecisionTimes:
    """Median times of a policy's decisions."""
    drafts = log.drafts["decision_ns"]
    return DecisionTimes(
        layer_ns=int(log.layers["decision_ns"].median()),
        leave_ns=int(log.layers["leave_decision_ns"].median()),
        draft_ns=int(drafts.median()) if len(drafts) else 0,
    )


def validate_table(
    name: str,
    choice: ForcedChoice,
    model: RandomModel,
    policies: Sequence[PolicyChoice],
    hardware: HardwareProfile,
    repeats: int,
    goal: float | None,
    seed: int,
    tick: Tick,
    rehearsed: ForcedChoice | None = None,
) -> Validation:
    """Logical runs, then repeated timed runs, then the predictions. `rehearsed`: other passes, on
    which the time of each policy's decisions is taken; None: decisions take the profile's time.
    """
    logical = run_logical(choice, model, policies, tick)
    costs: dict[str, CostTable] = {}
    for policy in policies:
        decision = None
        if rehearsed is not None:
            told = rehearsed.costs(hardware)
            log = run_policy(model, rehearsed.replay, policy.build(), told, rehearsed.settings)
            decision = decision_times(log)
            tick(policy.label)
        costs[policy.label] = choice.costs(hardware, decision)
    makers = {policy.label: policy.build for policy in policies}
    measured = run_policies(
        model, choice.replay, makers, costs, choice.settings, repeats, tick, seed
    )
    agreements = []
    for policy in policies:
        predicted = simulate(
            choice.replay, policy.build(), costs[policy.label], choice.simulation()
        )
        agreements.append(agreement(policy.label, predicted, measured[policy.label]))
        tick(policy.label)
    note = f"{choice.note()}; {model.note}"
    return Validation(name, note, agreements, logical, goal, os.getloadavg()[0])


def ticks(policies: int, repeats: int, rehearsed: bool) -> int:
    """How often validate_table calls `tick`."""
    return policies * (repeats + 2 + int(rehearsed))
