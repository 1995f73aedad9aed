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
from policies.decision import (
    DEMAND,
    NO_EXPERTS,
    NO_HITS,
    NO_PLACEMENT,
    PREFETCH,
    STREAMED,
    Decision,
    StartedCopy,
)
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
        needs = policy.needs
        self._reads_mass, self._reads_tokens = "router_mass" in needs, "draft_tokens" in needs
        self._reads_ahead = any(need.startswith("next_layer") for need in needs)
        self._packed_state: Any = None
        self._foreign: ForeignPolicy | None = None
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
        if self._foreign is not None:
            code, view = self._foreign.draft_step(step, token, left, slots, generations)
        else:
            if self._reads_tokens:
                self.policy.note_token(token)
            code, view = records.draft_step(self._packed(), left, slots, generations, len(slots))
        self._check(code, "draft step", step)
        return self._decided(view, NO_EXPERTS, NO_EXPERTS, NO_PLACEMENT, NO_HITS)

    def enter_layer(self, routing: Routing) -> Decision:
        """Routing of a layer is known: place every active expert, start demand copies and
        prefetches."""
        slots, generations = self._landed()
        experts = np.ascontiguousarray(routing.experts, np.int32)
        weights, predicted = NO_WEIGHTS, NO_PREDICTION
        if self._reads_mass and routing.weights is not None:
            weights = np.ascontiguousarray(routing.weights, np.float64)
        if self._reads_ahead and routing.predicted is not None:
            predicted = np.ascontiguousarray(routing.predicted, np.int32)
        if self._foreign is not None:
            code, view = self._foreign.enter_layer(
                routing, experts, weights, predicted, slots, generations
            )
        else:
            code, view = records.enter_layer(
                self._packed(), routing.layer, self.shape.staging, self.shape.launch_early,
                experts, weights, predicted, slots, generations, len(slots),
            )  # fmt: skip
        self._check(code, "layer", routing.layer)
        observation = self.observation
        active = observation.active[: observation.size[0]].copy()
        index = active.astype(np.intp)  # numpy would convert it for each of the three
        return self._decided(
            view, active, observation.counts[index], self.plan.placement[index],
            observation.ready[index],
        )  # fmt: skip

    def leave_layer(self, layer: int) -> Decision:
        """The layer has joined: its readers are gone; prefetch only."""
        slots, generations = self._landed()
        if self._foreign is not None:
            code, view = self._foreign.leave_layer(layer, slots, generations)
        else:
            code, view = records.leave_layer(self._packed(), layer, slots, generations, len(slots))
        self._check(code, "end of layer", layer)
        return self._decided(view, NO_EXPERTS, NO_EXPERTS, NO_PLACEMENT, NO_HITS)

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
        if not len(slots):
            return NO_SLOTS, NO_SLOTS
        self.landed += len(slots)
        # Contiguous: a strided array would be another type, and every kernel compiled twice.
        return (
            np.ascontiguousarray(slots, np.int64),
            np.ascontiguousarray(generations, np.int64),
        )

    def _check(self, code: int, where: str, number: int) -> None:
        if code != OK:
            raise refusal(self.policy.name, self.shape, f"{where} {number}", code, self.plan)

    def _decided(
        self, view: int, active: np.ndarray, counts: np.ndarray, placement: np.ndarray,
        hit: np.ndarray,
    ) -> Decision:  # fmt: skip
        """The plan as data, its copies started."""
        plan = self.plan
        demand, prefetches = plan.size.tolist()
        credits = int(plan.credits[0]) + prefetches
        if not demand and not prefetches:  # nearly all ends of layers: nothing to convert
            return Decision(
                int(view), self.landed, credits, active, counts, placement, hit,
                NO_EXPERTS, NO_EXPERTS, NO_EXPERTS, NO_EXPERTS, (),
            )  # fmt: skip
        fetched, into = plan.demand_expert[:demand].copy(), plan.demand_slot[:demand].copy()
        ahead = plan.prefetch_expert[:prefetches].copy()
        ahead_into = plan.prefetch_slot[:prefetches].copy()
        copies = self._start_copies(
            fetched.tolist(), into.tolist(), ahead.tolist(), ahead_into.tolist()
        )
        return Decision(
            int(view), self.landed, credits, active, counts, placement, hit,
            fetched, into, ahead, ahead_into, copies,
        )  # fmt: skip

    def _start_copies(
        self, demand: list[int], into: list[int], prefetch: list[int], prefetch_into: list[int]
    ) -> tuple[StartedCopy, ...]:
        generation, staging = self.ledger.slot_generation, self.shape.staging
        copies, streams = [], 0
        for expert, slot in zip(demand, into, strict=True):
            if slot == IN_FLIGHT:
                continue
            kind = DEMAND
            if slot == STAGING:
                slot = self.shape.slots + streams % staging
                streams += 1
                kind = STREAMED
                generation[slot] += 1
            copies.append(StartedCopy(expert, slot, int(generation[slot]), kind))
        for expert, slot in zip(prefetch, prefetch_into, strict=True):
            copies.append(StartedCopy(expert, slot, int(generation[slot]), PREFETCH))
        start = self.backend.start_copy
        for copy in copies:
            start(*copy)
        return tuple(copies)
