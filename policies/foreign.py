"""A policy in plain Python, run between the two compiled halves of a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from policies import entries
from policies.api import FETCH, Copy, Policy, Routing, View
from policies.credits import draft_cap, layer_cap
from policies.ledger import OK
from policies.plan import IN_FLIGHT, PREFETCH_LIMIT, STAGING
from policies.validate import COPY_NOT_PLACED, NOT_PLACED, OVER_CREDITS

if TYPE_CHECKING:
    from policies.session import Session


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


class ForeignPolicy:
    """Adapter between `Session` and a `Policy` object; same order of events as the compiled
    kernels."""

    def __init__(self, policy: Policy, session: Session) -> None:
        self.policy = policy
        self.session = session

    def _view(self, layer: int, credits: int) -> View:
        ledger = self.session.ledger
        return View(
            layer,
            max(credits, 0),
            _read_only(ledger.slot_expert),
            _read_only(ledger.slot_state),
            _read_only(ledger.slot_readers > 0),
            _read_only(ledger.expert_slot),
        )

    def _move(self, chosen: tuple[Copy, ...], credits: int) -> int:
        plan = self.session.plan
        if len(chosen) > min(max(credits, 0), PREFETCH_LIMIT):
            plan.refusal[:] = (OVER_CREDITS, chosen[-1][0], len(chosen))
            return OVER_CREDITS
        for place, (expert, slot) in enumerate(chosen):
            plan.prefetch_expert[place] = expert
            plan.prefetch_slot[place] = slot
        plan.size[1] = len(chosen)
        plan.credits[0] = credits - len(chosen)
        return int(entries.apply_prefetches(self.session.ledger, plan, credits))

    def draft_step(
        self, step: int, token: int, left_ns: int, slots: np.ndarray, generations: np.ndarray
    ) -> tuple[int, int]:
        """Publish, ask, apply. Returns (code, view digest)."""
        session = self.session
        cap = int(draft_cap(left_ns, session.costs.copy_ns))
        code, view = entries.open_moves(
            session.ledger, session.plan, cap, slots, generations, len(slots)
        )
        if code != OK:
            return code, view
        credits = int(session.plan.credits[0])
        shown = token if "draft_tokens" in self.policy.needs else -1
        return self._move(
            self.policy.draft_step(step, shown, self._view(-1, credits)), credits
        ), view

    def enter_layer(
        self, routing: Routing, experts: np.ndarray, weights: np.ndarray, predicted: np.ndarray,
        slots: np.ndarray, generations: np.ndarray,
    ) -> tuple[int, int]:  # fmt: skip
        """Publish and count, ask, validate. Returns (code, view digest)."""
        session, plan = self.session, self.session.plan
        code, view = entries.open_layer(
            session.ledger, session.observation, plan, session.costs, routing.layer, experts,
            weights, predicted, slots, generations, len(slots),
        )  # fmt: skip
        if code != OK:
            return code, view
        credits = int(plan.credits[0])
        shown = Routing(
            routing.layer,
            _read_only(experts),
            _read_only(weights) if len(weights) else None,
            _read_only(predicted) if len(predicted) else None,
        )
        chosen = self.policy.enter_layer(shown, self._view(routing.layer, credits))
        total = session.shape.experts
        for expert, placement in chosen.placement.items():
            if not 0 <= expert < total:
                plan.refusal[:] = (NOT_PLACED, routing.layer * total + expert, -1)
                return NOT_PLACED, view
            plan.placement[expert] = placement
        if len(chosen.demand) > total:
            plan.refusal[:] = (COPY_NOT_PLACED, chosen.demand[total][0], -1)
            return COPY_NOT_PLACED, view
        for place, (key, slot) in enumerate(chosen.demand):
            local = key - routing.layer * total
            streamed = 0 <= local < total and chosen.placement.get(local) != FETCH
            plan.demand_expert[place] = key
            plan.demand_slot[place] = slot if slot >= 0 else (STAGING if streamed else IN_FLIGHT)
        plan.size[0] = len(chosen.demand)
        credits -= int(entries.new_demand_copies(plan))
        code = entries.close_layer(
            session.ledger, session.observation, plan, routing.layer, session.shape.staging,
            session.shape.launch_early, credits,
        )  # fmt: skip
        if code != OK:
            return code, view
        return self._move(chosen.prefetch, credits), view

    def leave_layer(
        self, layer: int, slots: np.ndarray, generations: np.ndarray
    ) -> tuple[int, int]:
        """Readers gone, publish, ask, apply. Returns (code, view digest)."""
        session = self.session
        entries.release_readers(session.ledger)
        costs = session.costs
        rows = min(int(session.observation.size[1]), len(costs.dense_ns) - 1)
        cap = int(layer_cap(costs.layer_ns(rows), costs.copy_ns))
        code, view = entries.open_moves(
            session.ledger, session.plan, cap, slots, generations, len(slots)
        )
        if code != OK:
            return code, view
        credits = int(session.plan.credits[0])
        return self._move(self.policy.leave_layer(layer, self._view(layer, credits)), credits), view
