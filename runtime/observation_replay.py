"""Observation replay: tell a fresh policy what the recorded one was told, and compare its plans.

Equal plans prove that the policy has no hidden input: no clock, no tensor, nothing that happened
outside the session.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from policies.api import Routing, Shape
from policies.costs import CostTable
from policies.decision import STREAMED
from policies.session import Session
from runtime import observations as calls
from runtime.observations import Observation
from runtime.plans import DRAFT, ENTER, LEAVE, Plan, PlanComparison, compare_plans, plan_of


class RecordedLandings:
    """A backend without bytes: copies land, first in first out, when the record says so."""

    def __init__(self) -> None:
        self.target = 0  # copies into slots that have landed by the next call
        self._in_flight: deque[tuple[int, int]] = deque()
        self._landed = 0

    def start_copy(self, expert: int, slot: int, generation: int, kind: int) -> None:
        """Streamed copies never land in a slot."""
        if kind != STREAMED:
            self._in_flight.append((slot, generation))

    def landed(self) -> tuple[np.ndarray, np.ndarray]:
        """As many of the oldest as are missing to the target; fewer if the plans differ."""
        count = min(self.target - self._landed, len(self._in_flight))
        self._landed += count
        taken = [self._in_flight.popleft() for _ in range(count)]
        arrays = np.array(taken, np.int64).reshape(-1, 2)
        return arrays[:, 0], arrays[:, 1]


def replay_observations(
    policy: Any, shape: Shape, costs: CostTable, observations: Sequence[Observation]
) -> list[Plan]:
    """Plans that a fresh `policy` makes of recorded observations."""
    backend = RecordedLandings()
    session = Session(policy, shape, costs, backend)
    plans: list[Plan] = []
    decode_pass = -1
    for one in observations:
        backend.target = one.landed
        if one.call == calls.START_REQUEST:
            session.start_request(np.array(one.prompt, np.int32))
        elif one.call == calls.START_PASS:
            decode_pass += 1
            session.start_pass(one.token)
        elif one.call == calls.DRAFT_STEP:
            decision = session.draft_step(one.number, one.token)
            plans.append(plan_of(decode_pass, DRAFT, one.number, decision))
        elif one.call == calls.ENTER_LAYER:
            assert one.experts is not None
            routing = Routing(one.number, one.experts, one.weights, one.predicted)
            decision = session.enter_layer(routing)
            plans.append(plan_of(decode_pass, ENTER, one.number, decision))
        elif one.call == calls.LEAVE_LAYER:
            decision = session.leave_layer(one.number)
            plans.append(plan_of(decode_pass, LEAVE, one.number, decision))
        else:
            session.end_pass(one.number)
    return plans


def prove_observation_replay(
    policy: Any,
    shape: Shape,
    costs: CostTable,
    observations: Sequence[Observation],
    recorded: Sequence[Plan],
) -> PlanComparison:
    """Do the plans of a fresh `policy` equal the recorded ones? An illegal plan raises."""
    return compare_plans(list(recorded), replay_observations(policy, shape, costs, observations))
