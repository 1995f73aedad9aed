"""A session that is timed and remembers what it was told. Same calls, same order, nothing added."""

from collections.abc import Callable, Sequence

import numpy as np

from policies.api import Routing
from policies.session import Session
from runtime import observations as calls
from runtime.measured_log import Decided
from runtime.observations import Observation
from runtime.transfers import NO_LAYER, Transfers


class ObservedSession:
    """logical: the link is drained before each draft step and each end of a layer, so that no
    timing can change a decision. The begin of a layer sees what had landed when the one before
    ended, in both modes: it is that moment's snapshot.
    """

    def __init__(
        self,
        session: Session,
        transfers: Transfers,
        clock_ns: Callable[[], int],
        logical: bool,
    ) -> None:
        self.session = session
        self.observations: list[Observation] = []
        self._transfers, self._clock_ns, self._logical = transfers, clock_ns, logical

    def start_request(self, prompt: Sequence[int]) -> None:
        """A new request begins."""
        self.observations.append(Observation(calls.START_REQUEST, prompt=tuple(prompt)))
        self.session.start_request(np.asarray(prompt, np.int32))

    def start_pass(self, last_token: int) -> int:
        """Gamma of the coming pass."""
        self.observations.append(Observation(calls.START_PASS, token=last_token))
        self._publish()
        return self.session.start_pass(last_token)

    def draft_step(self, pass_index: int, step: int, token: int) -> Decided:
        """After draft step `step` of the pass."""
        self._publish()
        self._transfers.where(pass_index, NO_LAYER)
        begin = self._clock_ns()
        decision = self.session.draft_step(step, token)
        spent = self._clock_ns() - begin
        self.observations.append(Observation(calls.DRAFT_STEP, step, token, decision.landed))
        return Decided(decision, spent)

    def snapshot(self, since_ns: int) -> None:
        """The coming `enter_layer` is to see what had landed at `since_ns`, when the layer before,
        or drafting, ended.
        """
        if not self._logical:
            self._transfers.publish(since_ns)

    def enter_layer(self, pass_index: int, routing: Routing) -> Decided:
        """The routing of a layer is known."""
        self._transfers.where(pass_index, routing.layer)
        begin = self._clock_ns()
        decision = self.session.enter_layer(routing)
        spent = self._clock_ns() - begin
        self.observations.append(
            Observation(
                calls.ENTER_LAYER, routing.layer, 0, decision.landed, (),
                routing.experts, routing.weights, routing.predicted,
            )
        )  # fmt: skip
        return Decided(decision, spent)

    def leave_layer(self, pass_index: int, layer: int) -> Decided:
        """The layer has joined."""
        self._publish()
        self._transfers.where(pass_index, layer)
        begin = self._clock_ns()
        decision = self.session.leave_layer(layer)
        spent = self._clock_ns() - begin
        self.observations.append(Observation(calls.LEAVE_LAYER, layer, 0, decision.landed))
        return Decided(decision, spent)

    def end_pass(self, accepted: int) -> None:
        """The pass accepted that many drafts."""
        self.observations.append(Observation(calls.END_PASS, accepted))
        self.session.end_pass(accepted)

    def _publish(self) -> None:
        if self._logical:
            self._transfers.drain()
        self._transfers.publish(self._clock_ns())
