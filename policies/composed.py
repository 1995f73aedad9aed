"""ComposedPolicy: a policy made of parts, executed by the compiled kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from policies import kinds
from policies.api import Future, Shape
from policies.costs import CostTable
from policies.errors import UserError
from policies.estimators.foresight import next_use_table
from policies.estimators.inertia import start_boundaries
from policies.kernels import begin_pass
from policies.parts import SIGNALS, FixedWindow, Part, describe
from policies.state import (
    BALANCER,
    ESTIMATOR,
    LAYER,
    MOVER,
    PASS,
    PASS_NS,
    Program,
    State,
    new_state,
)

QUOTAS = ("per_layer", "pool")


def even_quota(layers: int, slots: int) -> np.ndarray:
    """int64 [layers]: slots spread evenly, the remainder to the first layers."""
    return np.full(layers, slots // layers, np.int64) + (np.arange(layers) < slots % layers)


class ComposedPolicy:
    """signal, estimator, balancer, mover, window, quota as given; state learned later lives in
    `state_`.

    quota "per_layer" gives every layer the same number of slots, "pool" shares all slots.
    """

    def __init__(
        self,
        name: str,
        estimator: Part,
        balancer: Part,
        mover: Part,
        signal: str = "count",
        window: FixedWindow | None = None,
        quota: str = "per_layer",
    ) -> None:
        if signal not in SIGNALS:
            raise UserError(f"policy {name}: unknown signal '{signal}'; there are {list(SIGNALS)}")
        if quota not in QUOTAS:
            raise UserError(f"policy {name}: unknown quota '{quota}'; there are {list(QUOTAS)}")
        self.name = name
        self.signal = signal
        self.estimator = estimator
        self.balancer = balancer
        self.mover = mover
        self.window = window or FixedWindow()
        self.quota = quota

    @property
    def clairvoyant(self) -> bool:
        """True if the policy must be shown the future before it runs."""
        return self.estimator.kind in (kinds.NEXT_USE, kinds.UPCOMING)

    @property
    def needs(self) -> frozenset[str]:
        """Priced observations that the parts read."""
        needs = {"router_mass"} if self.signal == "mass" else set()
        if self.mover.kind == kinds.NEXT_LAYER:
            needs |= {f"next_layer_{step + 1}" for step in range(int(self.mover.values()[0]))}
        return frozenset(needs)

    def parameters(self) -> dict[str, Any]:
        """Every parameter as given, as plain data."""
        return {
            "signal": self.signal,
            "estimator": describe(self.estimator),
            "balancer": describe(self.balancer),
            "mover": describe(self.mover),
            "window": describe(self.window),
            "quota": self.quota,
        }

    def reset(self, shape: Shape, costs: CostTable) -> None:
        """Forget everything; `shape` and `costs` hold for the run."""
        self.shape_ = shape
        self.costs_ = costs
        self.program_ = Program(
            SIGNALS[self.signal], self.estimator.kind, self.balancer.kind, self.mover.kind
        )
        self.state_: State = new_state(shape.layers, shape.experts)
        for row, part in (
            (ESTIMATOR, self.estimator),
            (BALANCER, self.balancer),
            (MOVER, self.mover),
        ):
            values = part.values()
            self.state_.parameters[row, : len(values)] = values
        if self.quota == "per_layer":
            self.state_.quota[:] = even_quota(shape.layers, shape.slots)
        self.state_.clock[PASS] = -1
        self.state_.clock[LAYER] = -1
        self.state_.clock[PASS_NS] = (
            shape.layers * costs.layer_ns(min(shape.gamma_max + 1, len(costs.dense_ns) - 1))
            + shape.gamma_max * costs.draft_step_ns
        )
        if self.estimator.kind == kinds.INERTIA:
            start_boundaries(self.state_)

    def foresee(self, future: Future) -> None:
        """Show a clairvoyant policy the activation counts of all passes to come; call after
        reset."""
        counts = np.ascontiguousarray(future.counts)
        table = next_use_table(counts)
        self.state_ = self.state_._replace(counts_to_come=counts, next_use=table)
        if self.estimator.kind == kinds.UPCOMING:
            self.state_.utility[:] = counts[0]
        else:
            first = np.where(counts[0] > 0, 0, table[0])
            layers = counts.shape[1]
            self.state_.utility[:] = -(first * layers + np.arange(layers)[:, None]).astype(float)

    def start_request(self, prompt: np.ndarray) -> None:
        """Slots and state survive requests; nothing is reset here."""

    def start_pass(self, last_token: int) -> int:
        """Begin a pass; returns gamma."""
        gamma = self.window.choose(self.shape_.gamma_max)
        begin_pass(self.program_, self.state_, self.costs_, gamma)
        return gamma

    def end_pass(self, accepted: int) -> None:
        """The pass committed `accepted` drafted tokens and one more."""
