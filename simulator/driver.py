"""Driver: plays requests, passes and layers, asking the session at every decision point."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import numpy.typing as npt
import simpy

from policies import api
from policies.costs import CostTable
from policies.decision import PREFETCH, Decision
from policies.errors import UserError
from policies.session import Session
from simulator.backend import LinkBackend
from simulator.clock import Clock
from simulator.host import Decided, Host
from simulator.lanes import Lanes, LaneTimes, LayerWork
from simulator.link import Copy
from simulator.observed import observed_routing, priced_layer_ns, priced_step_ns
from simulator.prefill import prefill_decision
from simulator.run_recorder import LayerRecord, PassRecord, RunRecorder, draft_columns
from traces.replay import Replay
from traces.runlog_schema import DECODE_PHASE, NO_LAYER, PREFILL_PHASE
from traces.window import Window

Steps = Generator[simpy.Event, Any, Any]


class Driver:
    """`passed`: called with each window after its pass; `only_gamma`: a clairvoyant's window."""

    def __init__(
        self,
        env: Clock,
        replay: Replay,
        costs: CostTable,
        backend: LinkBackend,
        host: Host,
        lanes: Lanes,
        recorder: RunRecorder,
        passed: Callable[[Window], None],
        only_gamma: int | None = None,
    ) -> None:
        self.env = env
        self.replay = replay
        self.costs = costs
        self.backend = backend
        self.host = host
        self.lanes = lanes
        self.recorder = recorder
        self.passed = passed
        self.only_gamma = only_gamma
        self.pass_index = 0

    def play_request(self, session: Session, request: int, warmup: bool) -> Steps:
        """Process: prefill, then passes until the request ends."""
        session.start_request(self.replay.prompt(request))
        prompt = self.replay.prefill(request)
        if prompt is not None:
            yield from self._prefill(request, prompt, warmup)
        start, end = self.replay.first(request), self.replay.end(request)
        while start < end:
            window = yield from self._pass(session, request, start, warmup)
            start += window.committed
            self.passed(window)

    def _prefill(self, request: int, experts: npt.NDArray[np.uint16], warmup: bool) -> Steps:
        record = self._new_pass(request, 0, 0, len(experts), warmup)
        record.columns["phase"] = PREFILL_PHASE
        model = self.replay.model
        for layer in range(model.layers):
            t0_ns = yield from self._dense(len(experts), context=0)
            decision = prefill_decision(
                experts[:, layer], layer, model.experts, self.backend.staging, self.costs
            )
            self.backend.layer = layer
            for place, expert in enumerate(decision.demand_expert):
                self.backend.start_stream(int(expert), place)
            yield from self._lanes(record, layer, t0_ns, decision, self.costs.d2h_ns, 0)
        yield from self._end_pass(record)

    def _pass(self, session: Session, request: int, start: int, warmup: bool) -> Steps:
        first = self.replay.window(request, start, self.replay.fixed_gamma or 0)
        gamma = session.start_pass(int(first.tokens[0]))
        if self.only_gamma is not None and gamma != self.only_gamma:
            raise UserError(
                f"policy {session.policy.name} chose gamma {gamma}, but its future was made for "
                f"gamma {self.only_gamma}: a clairvoyant needs a fixed window"
            )
        window = self.replay.window(request, start, gamma)
        record = self._new_pass(request, start, window.gamma, window.gamma + 1, warmup)
        record.columns |= {"accepted": window.accepted, "committed": window.committed}
        yield from self._draft(session, window, record)
        for layer in range(self.replay.model.layers):
            yield from self._layer(session, window, layer, record)
        session.end_pass(window.accepted)
        yield from self._end_pass(record)
        return window

    def _draft(self, session: Session, window: Window, record: PassRecord) -> Steps:
        costs = self.costs
        step_ns = costs.draft_step_ns + priced_step_ns(session.policy.needs, costs)
        self.backend.layer = NO_LAYER
        for step in range(window.gamma):
            yield self.env.timeout(step_ns)
            self.backend.snapshot_ns = self.env.now_ns
            token = int(window.tokens[step + 1])
            decision = session.draft_step(step, token)
            self._decide(self.env.now_ns, costs.decision_draft_ns)
            record.drafts.append(
                draft_columns(step, token, self.env.now_ns, costs.decision_draft_ns, decision)
            )
        record.columns["draft_end_ns"] = self.env.now_ns

    def _layer(self, session: Session, window: Window, layer: int, record: PassRecord) -> Steps:
        t0_ns = yield from self._dense(window.gamma + 1, window.start)
        # The session sees the pool as it was at t0, however many copies have landed since.
        self.backend.snapshot_ns = t0_ns
        self.backend.layer = layer
        needs = session.policy.needs
        decision = session.enter_layer(observed_routing(window, layer, needs))
        to_host_ns = self.costs.d2h_ns + priced_layer_ns(needs, self.costs)
        row = yield from self._lanes(
            record, layer, t0_ns, decision, to_host_ns, self.costs.decision_layer_ns
        )
        self.backend.snapshot_ns = self.env.now_ns
        row.left = session.leave_layer(layer)
        row.leave_decision_ns = self.costs.decision_leave_ns
        self._decide(self.env.now_ns, self.costs.decision_leave_ns)

    def _dense(self, rows: int, context: int) -> Steps:
        """Process: attention and router; returns t0."""
        costs, t0_ns = self.costs, self.env.now_ns
        attention_ns = costs.context_ns_per_1024 * context // 1024
        yield self.env.timeout(int(costs.dense_ns[rows]) + attention_ns + costs.router_ns)
        return t0_ns

    def _lanes(
        self,
        record: PassRecord,
        layer: int,
        t0_ns: int,
        decision: Decision,
        to_host_ns: int,
        decision_ns: int,
    ) -> Steps:
        """Process: from t1 (now) to the join; returns the layer's row."""
        # An expert that is streamed now may also be prefetched for later: two copies, and the lanes
        # wait for the first.
        started = {copy.expert: copy for copy in self.backend.started if copy.kind != PREFETCH}
        work = self._work(decision, layer, started)
        decided = self._decide(self.env.now_ns + to_host_ns, decision_ns)
        row = LayerRecord(
            layer, t0_ns, self.env.now_ns, decision, decided, LaneTimes(), gpu_busy_ns=work.gpu_ns
        )
        record.layers.append(row)
        yield from self.lanes.run(work, decided, row.lanes)
        return row

    def _work(self, decision: Decision, layer: int, started: dict[int, Copy]) -> LayerWork:
        costs, base = self.costs, layer * self.replay.model.experts
        counts = decision.counts
        on_gpu, on_cpu = decision.placement == api.GPU, decision.placement == api.CPU
        gpu_ns = dict(
            zip((base + decision.active).tolist(), costs.gpu_ns[counts].tolist(), strict=True)
        )
        copied = [
            (started.get(expert) or self.backend.filling[expert], gpu_ns[expert])
            for expert in decision.demand_expert.tolist()
        ]
        # The link is first in, first out: the order of numbers is the order of landings.
        copied.sort(key=lambda item: item[0].number)
        return LayerWork(
            costs.gpu_ns[counts[on_gpu]].tolist(), copied, int(costs.cpu_ns[counts[on_cpu]].sum())
        )

    def _decide(self, ready_ns: int, decision_ns: int) -> Decided:
        return self.host.decide(ready_ns, decision_ns, self.backend.take_started())

    def _new_pass(
        self, request: int, start: int, gamma: int, rows: int, warmup: bool
    ) -> PassRecord:
        self.backend.pass_index = self.pass_index
        now = self.env.now_ns
        columns = {
            "request": request, "pass_index": self.pass_index, "phase": DECODE_PHASE,
            "start_position": start, "gamma": gamma, "rows": rows, "accepted": 0, "committed": 0,
            "begin_ns": now, "draft_end_ns": now, "warmup": warmup,
        }  # fmt: skip
        self.pass_index += 1
        return PassRecord(columns)

    def _end_pass(self, record: PassRecord) -> Steps:
        """Process: the output head; then the pass is over."""
        yield self.env.timeout(self.costs.pass_ns)
        record.columns["end_ns"] = self.env.now_ns
        self.recorder.add_pass(record)
