"""MistakenPolicy: a composed policy whose estimator is shown wrong experts at a given rate.

What is wrong, exactly: in each layer of each pass every active expert is, with probability `rate`,
mistaken for an inactive expert of its layer, drawn anew: the activations of the one are reported as
the other's in all rows of the window. So a share `rate` of the experts that the estimator believes
active were not, and as many that were are missed; how many are active, and how often each, stays
true. Everything learned from the report (levels, threshold, copies, victims) is that of the
unchanged policy. The layer at hand is computed from its true routing, as always: a prediction is
only about passes to come. Works for policies that place by residency and copy nothing on demand.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies import entries
from policies.api import CPU, GPU, Copy, IntArray, LayerPlan, Routing, Shape, View
from policies.composed import ComposedPolicy
from policies.costs import CostTable
from policies.ledger import Ledger, new_ledger
from policies.observation import new_observation
from policies.plan import Plan, new_plan

NOTHING_LANDED = np.zeros(0, np.int64)
NO_WEIGHTS = np.zeros((0, 0))
NO_PREDICTION = np.zeros((0, 0, 0), np.int32)


class MistakenPolicy:
    """`policy` runs by its own compiled kernels, on a copy of what it may see. `seed` keys the
    mistakes: two policies with the same seed are shown the same wrong experts."""

    def __init__(self, policy: ComposedPolicy, rate: float, seed: int) -> None:
        self.policy = policy
        self.rate = rate
        self.seed = seed
        self.name = f"{policy.name} mistaken {rate:g}"
        self.needs: frozenset[str] = frozenset()

    def parameters(self) -> dict[str, Any]:
        """Those of the policy, the rate and the seed."""
        return {**self.policy.parameters(), "mistaken": self.rate, "seed": self.seed}

    def reset(self, shape: Shape, costs: CostTable) -> None:
        """Forget everything."""
        self.policy.reset(shape, costs)
        self.shape_ = shape
        self.costs_ = costs
        self.observation_ = new_observation(shape.experts)
        self.plan_: Plan = new_plan(shape.layers, shape.experts, shape.slots)
        self.random_ = np.random.default_rng(self.seed)
        self.gamma_ = 0

    def start_request(self, prompt: IntArray) -> None:
        """Passed on."""
        self.policy.start_request(prompt)

    def start_pass(self, last_token: int) -> int:
        """Passed on."""
        self.gamma_ = self.policy.start_pass(last_token)
        return self.gamma_

    def end_pass(self, accepted: int) -> None:
        """Passed on."""
        self.policy.end_pass(accepted)

    def draft_step(self, step: int, token: int, view: View) -> tuple[Copy, ...]:
        """The policy's prefetches."""
        left_ns = (self.gamma_ - 1 - step) * self.costs_.draft_step_ns
        entries.draft_step(
            self.policy.program_, self.policy.state_, self.costs_, _seen(view, self.shape_, ()),
            self.observation_, self.plan_, left_ns, NOTHING_LANDED, NOTHING_LANDED, 0,
        )  # fmt: skip
        return self._prefetches()

    def enter_layer(self, routing: Routing, view: View) -> LayerPlan:
        """True placements, and the prefetches that the policy derives from the wrong report."""
        truth = np.unique(routing.experts)
        base = routing.layer * self.shape_.experts
        placement = {int(e): GPU if view.ready(base + int(e)) else CPU for e in truth}
        read = [view.expert_slot[base + e] for e, where in placement.items() if where == GPU]
        reported = self._mistake(truth)[routing.experts]
        entries.enter_layer(
            self.policy.program_, self.policy.state_, self.costs_, _seen(view, self.shape_, read),
            self.observation_, self.plan_, routing.layer, self.shape_.staging,
            self.shape_.launch_early, np.ascontiguousarray(reported, np.int32), NO_WEIGHTS,
            NO_PREDICTION, NOTHING_LANDED, NOTHING_LANDED, 0,
        )  # fmt: skip
        return LayerPlan(placement, (), self._prefetches())

    def leave_layer(self, layer: int, view: View) -> tuple[Copy, ...]:
        """The policy's prefetches."""
        entries.leave_layer(
            self.policy.program_, self.policy.state_, self.costs_, _seen(view, self.shape_, ()),
            self.observation_, self.plan_, layer, NOTHING_LANDED, NOTHING_LANDED, 0,
        )  # fmt: skip
        return self._prefetches()

    def _mistake(self, active: NDArray[Any]) -> NDArray[np.int64]:
        """int64 [experts]: which expert each is reported as."""
        reported = np.arange(self.shape_.experts)
        others = np.setdiff1d(reported, active)
        strangers = self.random_.permutation(others)
        wrong = self.random_.random(len(active)) < self.rate
        swapped = active[wrong][: len(strangers)]
        reported[swapped] = strangers[: len(swapped)]
        return reported

    def _prefetches(self) -> tuple[Copy, ...]:
        plan = self.plan_
        pairs = zip(plan.prefetch_expert, plan.prefetch_slot, strict=True)
        return tuple(Copy(int(e), int(s)) for e, s in list(pairs)[: int(plan.size[1])])


def _seen(view: View, shape: Shape, read: Any) -> Ledger:
    """A copy of the pool that the kernels may write to. Slots in `read` are not victims: this
    layer computes from them."""
    ledger = new_ledger(shape.layers, shape.experts, shape.slots, shape.staging)
    ledger.slot_expert[:] = view.slot_expert
    ledger.slot_state[:] = view.slot_state
    ledger.slot_readers[:] = view.slot_in_use
    ledger.slot_readers[np.asarray(read, np.int64)] = 1
    ledger.expert_slot[:] = view.expert_slot
    return ledger
