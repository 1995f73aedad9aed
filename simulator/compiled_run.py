"""Plays a run of the compiled engine request by request, handing over the log chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from policies.api import Shape
from policies.composed import ComposedPolicy
from policies.costs import CostTable
from policies.errors import UserError
from policies.ledger import OK
from policies.session import Session, refusal
from simulator.compiled_buffers import PASSES, Buffers, PassBounds, new_buffers, pass_bounds
from simulator.compiled_log import clear, keep_flying
from simulator.compiled_pass import AT_DRAFT, AT_LEAVE, OTHER_GAMMA, play_passes
from simulator.compiled_prefill import TOO_OFTEN, play_prefill
from simulator.compiled_state import (
    COPIES,
    COPY_COLUMNS,
    QUEUE_LENGTH,
    START,
    Machine,
    RequestData,
    Rules,
    new_machine,
    new_scratch,
)
from simulator.foresight import clairvoyant_gamma, future_of
from simulator.observed import priced_layer_ns, priced_step_ns
from simulator.requirements import rows_needed
from simulator.settings import SimulationSettings
from traces.replay import Replay
from traces.request_arrays import RequestArrays

NO_WEIGHTS = np.zeros((0, 0, 0))
NO_PREDICTION = np.zeros((0, 0, 0, 0), np.uint16)


@dataclass(frozen=True)
class Chunk:
    """What the loop wrote since the last chunk; copies from row `first_copy` on are new."""

    buffers: Buffers
    machine: Machine
    first_copy: int


class NoCopies:
    """The session's backend: the compiled loop moves the bytes itself."""

    def start_copy(self, expert: int, slot: int, generation: int, kind: int) -> None:
        """Never called."""
        raise NotImplementedError

    def landed(self) -> tuple[np.ndarray, np.ndarray]:
        """Never called."""
        raise NotImplementedError


class _Run:
    """A run under way: session, machine, buffers."""

    def __init__(
        self,
        replay: Replay,
        policy: ComposedPolicy,
        costs: CostTable,
        settings: SimulationSettings,
        drain: Callable[[Chunk], None],
    ) -> None:
        model, needs = replay.model, policy.needs
        self.replay, self.policy, self.costs, self.settings = replay, policy, costs, settings
        self.drain = drain
        rows = rows_needed(replay, settings.gamma)
        self.bounds: PassBounds = pass_bounds(
            model.layers, model.experts, model.top_k, settings.gamma, rows
        )
        self.buffers = new_buffers(self.bounds)
        self.machine = new_machine(settings.slots, settings.staging, 4 * self.bounds.copies)
        self.scratch = new_scratch(model.experts, model.top_k, settings.gamma + 1, settings.slots)
        self.first_copy = 0
        self.horizon = max((step for step in (1, 2, 3) if f"next_layer_{step}" in needs), default=0)
        self.rules = Rules(
            settings.gamma, settings.slots, settings.staging, settings.launch == "early",
            settings.lanes == "serial", priced_layer_ns(needs, costs), priced_step_ns(needs, costs),
            0, False, self.horizon, -1 if replay.fixed_gamma is None else replay.fixed_gamma,
            "draft_tokens" in needs,
        )  # fmt: skip

    def new_session(self, before: Session | None, requests: Sequence[int]) -> Session:
        """Empty slots; a clairvoyant policy is shown the passes of `requests`."""
        model, settings = self.replay.model, self.settings
        shape = Shape(
            model.layers, model.experts, model.top_k, settings.slots, settings.staging,
            settings.gamma, settings.launch == "early",
        )  # fmt: skip
        session = Session(self.policy, shape, self.costs, NoCopies())
        if before is not None:
            # Generations go on counting, so that the copies of a run never share (slot, number).
            session.ledger.slot_generation[:] = before.ledger.slot_generation
            self.machine.clock[QUEUE_LENGTH] = 0
        if self.policy.clairvoyant:
            gamma = clairvoyant_gamma(self.policy, settings.gamma)
            future = future_of(self.replay, requests, gamma)
            if len(future.counts) == 0:
                raise UserError("the trace has no pass to play")
            self.policy.foresee(future)
        return session

    def play_request(
        self, session: Session, request: int, warmup: bool, passed: Callable[[int], None]
    ) -> None:
        """Prefill, then passes until the request ends; `passed` gets the tokens committed."""
        arrays, model = self.replay.arrays(request), self.replay.model
        rules = self.rules._replace(request=request, warmup=warmup)
        session.start_request(self.replay.prompt(request))
        if arrays.prefill is not None:
            self.make_room()
            code = play_prefill(
                self.machine, self.buffers, self.costs, rules, model.layers, model.experts,
                arrays.prefill,
            )  # fmt: skip
            _refuse_repeats(code, request)
        data, clock = self.data_of(arrays), self.machine.clock
        clock[START] = 0
        while clock[START] < len(data.begin):
            self.make_room()
            before = int(clock[START])
            code, where, number = play_passes(
                self.policy.program_, self.policy.state_, self.costs, session.ledger,
                session.observation, session.plan, rules, self.machine, self.buffers, data,
                self.scratch, self.bounds.copies,
            )  # fmt: skip
            _refuse_repeats(code, request)
            if code == OTHER_GAMMA:
                self.replay.window(request, arrays.first + int(clock[START]), number)
            if code != OK:
                name = _place_name(where, number)
                raise refusal(self.policy.name, session.shape, name, code, session.plan)
            passed(int(clock[START]) - before)

    def data_of(self, arrays: RequestArrays) -> RequestData:
        """The columns that the policy needs, converted for the loop."""
        weights, predicted = NO_WEIGHTS, NO_PREDICTION
        if "router_mass" in self.policy.needs and arrays.weights is not None:
            weights = arrays.weights.astype(np.float64)
        if self.horizon and arrays.next_layer is not None:
            predicted = np.ascontiguousarray(arrays.next_layer[: self.horizon])
        return RequestData(
            arrays.begin, arrays.longest, arrays.gamma_limit, arrays.commit_limit,
            np.ascontiguousarray(arrays.tokens), np.ascontiguousarray(arrays.experts), weights,
            predicted, arrays.first,
        )  # fmt: skip

    def make_room(self) -> None:
        """Hand over what was written, unless another pass is sure to fit."""
        buffers, bound = self.buffers, self.bounds.copies
        if buffers.used[PASSES] == len(buffers.passes) or self._copies_left() < bound:
            self.hand_over()
        if self._copies_left() < bound:  # a long queue on the link
            more = np.zeros((2 * len(self.machine.copies), COPY_COLUMNS), np.int64)
            more[: len(self.machine.copies)] = self.machine.copies
            self.machine = self.machine._replace(copies=more)

    def hand_over(self) -> None:
        """Hand over what was written since the last time."""
        self.drain(Chunk(self.buffers, self.machine, self.first_copy))
        clear(self.buffers)
        self.first_copy = keep_flying(self.machine)

    def _copies_left(self) -> int:
        return len(self.machine.copies) - int(self.machine.clock[COPIES])


def play_run(
    replay: Replay,
    policy: ComposedPolicy,
    costs: CostTable,
    settings: SimulationSettings,
    drain: Callable[[Chunk], None],
    progress: Callable[[int, int], None] | None = None,
    after_request: Callable[[], None] | None = None,
) -> None:
    """Play all requests; `drain` takes the log, in order, before its buffers are used again.
    `after_request` is called when a request's log has been handed over; it may stop the run by
    raising."""
    requests = replay.request_ids[: settings.requests]
    run = _Run(replay, policy, costs, settings, drain)
    passed = _reporter(replay, requests, progress)
    session = None
    for place, request in enumerate(requests):
        if session is None or settings.cold_start:
            played = [request] if settings.cold_start else requests
            session = run.new_session(session, played)
        run.play_request(session, request, place < settings.warmup_requests, passed)
        if after_request is not None:
            run.hand_over()
            after_request()
    run.hand_over()


def _reporter(
    replay: Replay, requests: Sequence[int], progress: Callable[[int, int], None] | None
) -> Callable[[int], None]:
    if progress is None:
        return lambda committed: None
    total = sum(replay.end(request) - replay.first(request) for request in requests)
    so_far = 0

    def report(committed: int) -> None:
        nonlocal so_far
        so_far += committed
        progress(so_far, total)

    return report


def _refuse_repeats(code: int, request: int) -> None:
    if code == TOO_OFTEN:
        raise UserError(
            f"request {request}: a row of the trace chooses one expert twice; record it again"
        )


def _place_name(where: int, number: int) -> str:
    if where == AT_DRAFT:
        return f"draft step {number}"
    return f"end of layer {number}" if where == AT_LEAVE else f"layer {number}"
