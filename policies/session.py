"""Session: the one place where a policy is asked, its plan is checked, and copies are started.

Simulator and runtime both call it; a backend only moves bytes (or pretends to): `start_copy` and
`landed`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from policies import records
from policies.api import NEEDS, Policy, Routing, Shape
from policies.composed import ComposedPolicy
from policies.costs import CostTable
from policies.decision import DEMAND, PREFETCH, STREAMED, Decision, StartedCopy
from policies.errors import UserError
from policies.foreign import ForeignPolicy
from policies.ledger import OK, new_ledger
from policies.observation import new_observation
from policies.plan import IN_FLIGHT, STAGING, Plan, new_plan
from policies.validate import PLAN_REASONS

NO_WEIGHTS = np.zeros((0, 0))
NO_PREDICTION = np.zeros((0, 0, 0), np.int32)
NO_SLOTS = np.zeros(0, np.int64)


class Backend(Protocol):
    """Who moves the bytes. Copies run first in, first out."""

    def start_copy(self, expert: int, slot: int, generation: int, kind: int) -> None:
        """Put a copy of `expert` (flat key) into `slot` on the link; slots from `shape.slots` up
        are staging buffers."""

    def landed(self) -> tuple[np.ndarray, np.ndarray]:
        """Slots and generations (int64 [n] each) of the copies into slots that have landed since
        the last call."""


class IllegalPlan(Exception):
    """A policy broke a rule; the message names the policy, the rule, the expert and the slot."""


def refusal(policy: str, shape: Shape, where: str, code: int, plan: Plan) -> IllegalPlan:
    """The error for a decision of `policy` at `where` that ended with `code`."""
    _, expert, slot = (int(value) for value in plan.refusal)
    reason = PLAN_REASONS.get(code, "the routing names an expert out of range")
    return IllegalPlan(
        f"policy {policy}, {where}: {reason} (layer {expert // shape.experts}, "
        f"expert {expert % shape.experts}, slot {slot})"
    )


class Session:
    """One policy over one slot pool. Slots and policy state survive requests; a new Session is a
    cold start."""

    def __init__(self, policy: Any, shape: Shape, costs: CostTable, backend: Backend) -> None:
        costs.validate()
        unknown = set(policy.needs) - set(NEEDS)
        if unknown:
            raise UserError(
                f"policy {policy.name}: unknown needs {sorted(unknown)}; there are {NEEDS}"
            )
        if not 1 <= shape.slots <= shape.layers * shape.experts:
            raise UserError(
                f"slots={shape.slots}: must be 1..{shape.layers * shape.experts} "
                f"({shape.layers} layers x {shape.experts} experts)"
            )
        self.policy = policy
        self.shape = shape
        self.costs = costs
        self.backend = backend
        self.ledger = new_ledger(shape.layers, shape.experts, shape.slots, shape.staging)
        self.observation = new_observation(shape.experts)
        self.plan = new_plan(shape.layers, shape.experts, shape.slots)
        self.landed = 0
        self.gamma = 0
        policy.reset(shape, costs)
        self._packed_state: Any = None
        self._foreign = None
        if not isinstance(policy, ComposedPolicy):
            if not isinstance(policy, Policy):
                raise UserError(f"{type(policy).__name__} is not a policy: see policies.api.Policy")
            self._foreign = ForeignPolicy(policy, self)

    def start_request(self, prompt: np.ndarray) -> None:
        """A new request begins; `prompt` int [n] token ids, empty where unknown."""
        self.policy.start_request(np.asarray(prompt, np.int32))

    def start_pass(self, last_token: int) -> int:
        """Ask for gamma of the coming pass, 0..gamma_max."""
        gamma = int(self.policy.start_pass(int(last_token)))
        if not 0 <= gamma <= self.shape.gamma_max:
            raise IllegalPlan(
                f"policy {self.policy.name}: gamma {gamma}, allowed 0..{self.shape.gamma_max}"
            )
        self.gamma = gamma
        return gamma

    def draft_step(self, step: int, token: int) -> Decision:
        """After draft step `step` (0-based) proposed `token`: prefetch only."""
        slots, generations = self._landed()
        left = (self.gamma - 1 - step) * self.costs.draft_step_ns
        if self._foreign:
            code, view = self._foreign.draft_step(step, token, left, slots, generations)
        else:
            if "draft_tokens" in self.policy.needs:
                self.policy.note_token(token)
            code, view = records.draft_step(self._packed(), left, slots, generations, len(slots))
        return self._finish(code, view, f"draft step {step}", layer=-1)

    def enter_layer(self, routing: Routing) -> Decision:
        """Routing of a layer is known: place every active expert, start demand copies and
        prefetches."""
        slots, generations = self._landed()
        experts = np.ascontiguousarray(routing.experts, np.int32)
        weights, predicted = NO_WEIGHTS, NO_PREDICTION
        if routing.weights is not None and "router_mass" in self.policy.needs:
            weights = np.ascontiguousarray(routing.weights, np.float64)
        if routing.predicted is not None and any("next" in need for need in self.policy.needs):
            predicted = np.ascontiguousarray(routing.predicted, np.int32)
        arguments = (routing.layer, experts, weights, predicted, slots, generations)
        if self._foreign:
            code, view = self._foreign.enter_layer(routing, *arguments[1:])
        else:
            code, view = records.enter_layer(
                self._packed(), routing.layer, self.shape.staging, self.shape.launch_early,
                *arguments[1:], len(slots),
            )  # fmt: skip
        return self._finish(code, view, f"layer {routing.layer}", layer=routing.layer)

    def leave_layer(self, layer: int) -> Decision:
        """The layer has joined: its readers are gone; prefetch only."""
        slots, generations = self._landed()
        if self._foreign:
            code, view = self._foreign.leave_layer(layer, slots, generations)
        else:
            code, view = records.leave_layer(self._packed(), layer, slots, generations, len(slots))
        return self._finish(code, view, f"end of layer {layer}", layer=-1)

    def end_pass(self, accepted: int) -> None:
        """The pass is over; `accepted` of its gamma drafted tokens were committed."""
        self.policy.end_pass(int(accepted))

    def _packed(self) -> records.Records:
        """The records of a decision, packed again only where foresight gave the policy a new
        state."""
        state = self.policy.state_
        if self._packed_state is not state:
            self._records = records.Records(
                self.policy.program_, state, self.costs, self.ledger, self.observation, self.plan
            )
            self._packed_state = state
        return self._records

    def _landed(self) -> tuple[np.ndarray, np.ndarray]:
        slots, generations = self.backend.landed()
        self.landed += len(slots)
        # Contiguous: a strided array would be another type, and every kernel compiled twice.
        return (
            np.ascontiguousarray(slots, np.int64),
            np.ascontiguousarray(generations, np.int64),
        )

    def _finish(self, code: int, view: int, where: str, layer: int) -> Decision:
        if code != OK:
            raise refusal(self.policy.name, self.shape, where, code, self.plan)
        copies = self._start_copies()
        plan, observation = self.plan, self.observation
        active = observation.active[: observation.size[0] if layer >= 0 else 0].copy()
        demand, prefetches = int(plan.size[0]), int(plan.size[1])
        return Decision(
            int(view), self.landed, int(plan.credits[0]) + prefetches, active,
            observation.counts[active], plan.placement[active], observation.ready[active],
            plan.demand_expert[:demand].copy(), plan.demand_slot[:demand].copy(),
            plan.prefetch_expert[:prefetches].copy(), plan.prefetch_slot[:prefetches].copy(),
            copies,
        )  # fmt: skip

    def _start_copies(self) -> tuple[StartedCopy, ...]:
        plan, generation = self.plan, self.ledger.slot_generation
        copies = []
        streams = 0
        for place in range(int(plan.size[0])):
            slot = int(plan.demand_slot[place])
            if slot == IN_FLIGHT:
                continue
            kind = DEMAND
            if slot == STAGING:
                slot = self.shape.slots + streams % self.shape.staging
                streams += 1
                kind = STREAMED
                generation[slot] += 1
            copies.append(
                StartedCopy(int(plan.demand_expert[place]), slot, int(generation[slot]), kind)
            )
        for place in range(int(plan.size[1])):
            slot = int(plan.prefetch_slot[place])
            copies.append(
                StartedCopy(int(plan.prefetch_expert[place]), slot, int(generation[slot]), PREFETCH)
            )
        for copy in copies:
            self.backend.start_copy(*copy)
        return tuple(copies)
