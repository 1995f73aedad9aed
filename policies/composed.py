"""ComposedPolicy: a policy made of parts, executed by the compiled kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from policies import entries, kinds
from policies.api import Future, Shape
from policies.costs import CostTable
from policies.errors import UserError
from policies.estimators.fixed import start_fixed
from policies.estimators.foresight import next_use_table, sum_uses_to_come
from policies.estimators.inertia import start_boundaries
from policies.estimators.matches import NEAREST, PASSES
from policies.estimators.reuse import FEATURES, start_reuse
from policies.parts import QUOTAS, SIGNALS, FixedWindow, Part, Shallow, describe
from policies.quotas.even import even_quota
from policies.quotas.shallow import shallow_quota
from policies.quotas.whole_layers import whole_layers_quota
from policies.state import (
    BALANCER,
    BEFORE,
    ESTIMATOR,
    LAYER,
    MOVER,
    PASS,
    PASS_NS,
    QUOTA,
    SLOTS,
    TOP_K,
    WINDOW,
    Program,
    Sizes,
    State,
    new_state,
)

CLAIRVOYANT = (kinds.NEXT_USE, kinds.UPCOMING, kinds.USES_TO_COME)


class ComposedPolicy:
    """signal, estimator, balancer, mover, window, quota as given; state learned later lives in
    `state_`.

    quota: a part of policies.parts.quotas or its name; "per_layer" gives every layer the same
    number of slots, "pool" shares all slots.
    """

    def __init__(
        self,
        name: str,
        estimator: Part,
        balancer: Part,
        mover: Part,
        signal: str = "count",
        window: Part | None = None,
        quota: str | Part = "per_layer",
    ) -> None:
        if signal not in SIGNALS:
            raise UserError(f"policy {name}: unknown signal '{signal}'; there are {list(SIGNALS)}")
        if isinstance(quota, str):
            if quota not in QUOTAS:
                raise UserError(f"policy {name}: unknown quota '{quota}'; there are {list(QUOTAS)}")
            quota = QUOTAS[quota]()
        self.name = name
        self.signal = signal
        self.estimator = estimator
        self.balancer = balancer
        self.mover = mover
        self.window = window or FixedWindow()
        self.quota = quota
        self.withheld: frozenset[str] = frozenset()

    @property
    def clairvoyant(self) -> bool:
        """True if the policy must be shown the future before it runs."""
        return self.estimator.kind in CLAIRVOYANT

    @property
    def needs(self) -> frozenset[str]:
        """Priced observations that the parts read."""
        mass = frozenset({"router_mass"} if self.signal == "mass" else ())
        return mass.union(*(part.needs() for part in self._parts().values())) - self.withheld

    @property
    def wishes(self) -> frozenset[str]:
        """Those needs that the policy can do without."""
        return frozenset().union(*(part.wishes() for part in self._parts().values()))

    def do_without(self, needs: frozenset[str]) -> None:
        """Play without these observations, which must be wishes; they are not paid for either."""
        if not needs <= self.wishes:
            raise UserError(f"policy {self.name} cannot do without {sorted(needs - self.wishes)}")
        self.withheld = needs

    def parameters(self) -> dict[str, Any]:
        """Every parameter as given, as plain data."""
        names = ("estimator", "balancer", "mover", "window", "quota")
        parts = zip(names, self._parts().values(), strict=True)
        return {"signal": self.signal} | {name: describe(part) for name, part in parts}

    def reset(self, shape: Shape, costs: CostTable) -> None:
        """Forget everything; `shape` and `costs` hold for the run."""
        self.shape_ = shape
        self.costs_ = costs
        self.program_ = Program(
            SIGNALS[self.signal], self.estimator.kind, self.balancer.kind, self.mover.kind,
            self.window.kind, self.quota.kind,
        )  # fmt: skip
        self.state_: State = new_state(shape.layers, shape.experts, self._sizes(shape))
        for row, part in self._parts().items():
            values = part.values()
            self.state_.parameters[row, : len(values)] = values
        self.state_.quota[:] = self._first_quota(shape)
        clock = self.state_.clock
        clock[PASS] = -1
        clock[LAYER] = -1
        clock[BEFORE] = -1
        clock[TOP_K] = shape.top_k
        clock[SLOTS] = shape.slots
        clock[PASS_NS] = (
            shape.layers * costs.layer_ns(min(shape.gamma_max + 1, len(costs.dense_ns) - 1))
            + shape.gamma_max * costs.draft_step_ns
        )
        if self.estimator.kind == kinds.INERTIA:
            start_boundaries(self.state_)
        elif self.estimator.kind == kinds.FIXED:
            start_fixed(self.state_)
        elif self.estimator.kind == kinds.REUSE:
            start_reuse(self.state_)

    def foresee(self, future: Future) -> None:
        """Show a clairvoyant policy the activation counts of all passes to come; call after
        reset."""
        counts = np.ascontiguousarray(future.counts)
        table = next_use_table(counts)
        self.state_.utility_version[:] += 1
        self.state_ = self.state_._replace(counts_to_come=counts, next_use=table)
        if self.estimator.kind == kinds.UPCOMING:
            self.state_.utility[:] = counts[0]
        elif self.estimator.kind == kinds.USES_TO_COME:
            for layer in range(counts.shape[1]):
                sum_uses_to_come(self.state_, layer, 0)
        else:
            first = np.where(counts[0] > 0, 0, table[0])
            layers = counts.shape[1]
            self.state_.utility[:] = -(first * layers + np.arange(layers)[:, None]).astype(float)

    def start_request(self, prompt: np.ndarray) -> None:
        """A request begins; slots and state survive requests."""
        entries.start_request(self.program_, self.state_)

    def start_pass(self, last_token: int) -> int:
        """Begin a pass; returns gamma."""
        return int(
            entries.start_pass(
                self.program_, self.state_, self.costs_, self.shape_.gamma_max, last_token
            )
        )

    def note_token(self, token: int) -> None:
        """A drafted token is known; called in order, before the decision of its draft step."""
        entries.note_token(self.program_, self.state_, token)

    def end_pass(self, accepted: int) -> None:
        """The pass committed `accepted` drafted tokens and one more."""
        entries.end_pass(self.program_, self.state_, accepted)

    def _parts(self) -> dict[int, Part]:
        """Parts by their row of parameters."""
        return {
            ESTIMATOR: self.estimator, BALANCER: self.balancer, MOVER: self.mover,
            WINDOW: self.window, QUOTA: self.quota,
        }  # fmt: skip

    def _sizes(self, shape: Shape) -> Sizes:
        first = self.estimator.values()
        return Sizes(
            requests=int(first[0]) if self.estimator.kind == kinds.REQUEST_MATRIX else 0,
            curves=int(self.quota.kind == kinds.MISS_CURVES),
            queue_levels=int(self.mover.values()[0]) if self.mover.kind == kinds.CODE_QUEUE else 0,
            buckets=int(first[3]) if self.estimator.kind == kinds.REUSE else 0,
            ways=min(2 * shape.top_k, shape.experts),
            features=FEATURES if self.estimator.kind == kinds.REUSE else 0,
            passes=PASSES if self.estimator.kind == kinds.REUSE else 0,
            nearest=NEAREST if self.estimator.kind == kinds.REUSE else 0,
        )

    def _first_quota(self, shape: Shape) -> np.ndarray:
        """int64 [layers]: slots of each layer at reset, -1 for one pool."""
        if isinstance(self.quota, Shallow):
            return shallow_quota(shape.layers, shape.experts, shape.slots, self.quota.bias)
        if self.quota.kind == kinds.WHOLE_LAYERS:
            return whole_layers_quota(shape.layers, shape.experts, shape.slots)
        if self.quota.kind == kinds.POOL:
            return np.full(shape.layers, -1, np.int64)
        return even_quota(shape.layers, shape.slots)
