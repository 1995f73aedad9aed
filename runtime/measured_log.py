"""Collects what one pass did and writes it to the run log once the pass is whole."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from policies.decision import Decision
from runtime.lane_times import LaneTimes
from runtime.transfers import CopyRecord
from traces.runlog import RunLogBuilder
from traces.runlog_schema import DECODE_PHASE, PREFILL_PHASE


class Decided(NamedTuple):
    """A decision and how long it took, in ns."""

    decision: Decision
    spent_ns: int


class _Layer(NamedTuple):
    layer: int
    t0_ns: int
    t1_ns: int
    t2_ns: int
    entered: Decided
    times: LaneTimes
    left: Decided


@dataclass
class _Pass:
    index: int
    request: int
    begin_ns: int
    gamma: int = 0
    rows: int = 0
    start: int = 0
    draft_end_ns: int = 0
    layers: list[_Layer] = field(default_factory=list)
    drafts: list[dict[str, Any]] = field(default_factory=list)


class MeasuredLog:
    """Passes are numbered from 0 through the run, prefill included.

    A pass that fails half-way leaves nothing behind: the log holds whole passes only.
    """

    def __init__(self, builder: RunLogBuilder) -> None:
        self.builder = builder
        self.warmup = False
        self._next = 0
        self._pass: _Pass | None = None

    @property
    def pass_index(self) -> int:
        """Number of the pass that runs now."""
        return self._running.index

    @property
    def _running(self) -> _Pass:
        if self._pass is None:
            raise RuntimeError("no pass is running")
        return self._pass

    def begin_pass(self, request: int, now_ns: int, gamma: int = 0) -> None:
        """A pass begins; one that was never ended is forgotten."""
        self._pass = _Pass(self._next, request, now_ns, gamma, draft_end_ns=now_ns)

    def draft(self, step: int, token: int, now_ns: int, decided: Decided) -> None:
        """A draft step and the prefetches decided after it."""
        decision = decided.decision
        self._running.drafts.append(
            {
                "step": step,
                "token": token,
                "t_ns": now_ns,
                "decision_ns": decided.spent_ns,
                "prefetch_expert": decision.prefetch_expert,
                "prefetch_slot": decision.prefetch_slot,
                "view_digest": decision.view,
                "landed": decision.landed,
                "credits": decision.credits,
            }
        )

    def before_verify(self, rows: int, now_ns: int) -> None:
        """Drafting is over."""
        self._running.rows = rows
        self._running.draft_end_ns = now_ns

    def starts_at(self, position: int) -> None:
        """Place in the text of the first row of the window."""
        self._running.start = position

    def layer(
        self,
        layer: int,
        t0_ns: int,
        t1_ns: int,
        t2_ns: int,
        entered: Decided,
        times: LaneTimes,
        left: Decided,
    ) -> None:
        """A finished layer of a decode pass."""
        # Taken as they are: a row of the log is made of them once the pass is over.
        self._running.layers.append(_Layer(layer, t0_ns, t1_ns, t2_ns, entered, times, left))

    def copies(self, records: list[CopyRecord]) -> None:
        """Copies that have landed."""
        for one in records:
            self.builder.add_copy(
                copy_id=one.copy_id, expert=one.expert, slot=one.slot, generation=one.generation,
                kind=one.kind, pass_index=one.pass_index, layer=one.layer, bytes=one.size,
                issue_ns=one.issue_ns, begin_ns=one.begin_ns, landing_ns=one.landing_ns,
            )  # fmt: skip

    def end_prefill(self, rows: int, now_ns: int) -> None:
        """The prompt was read and the first token chosen."""
        self._running.rows = rows
        self._end(PREFILL_PHASE, accepted=0, committed=1, now_ns=now_ns)

    def end_pass(self, accepted: int, committed: int, now_ns: int) -> None:
        """The pass committed `committed` tokens."""
        self._end(DECODE_PHASE, accepted, committed, now_ns)

    def _end(self, phase: int, accepted: int, committed: int, now_ns: int) -> None:
        done, self._pass = self._running, None
        for row in done.drafts:
            self.builder.add_draft(pass_index=done.index, **row)
        for one in done.layers:
            self._add_layer(done.index, one)
        self.builder.add_pass(
            request=done.request, pass_index=done.index, phase=phase, start_position=done.start,
            gamma=done.gamma, rows=done.rows, accepted=accepted, committed=committed,
            begin_ns=done.begin_ns, draft_end_ns=done.draft_end_ns, end_ns=now_ns,
            warmup=self.warmup,
        )  # fmt: skip
        self._next += 1

    def _add_layer(self, pass_index: int, one: _Layer) -> None:
        enter, times, leave = one.entered.decision, one.times, one.left.decision
        self.builder.add_layer(
            pass_index=pass_index, layer=one.layer,
            t0_ns=one.t0_ns, t1_ns=one.t1_ns, t2_ns=one.t2_ns,
            gpu_begin_ns=times.gpu_begin_ns, gpu_end_ns=times.gpu_end_ns,
            gpu_busy_ns=times.gpu_busy_ns,
            cpu_begin_ns=times.cpu_begin_ns, cpu_end_ns=times.cpu_end_ns, join_ns=times.join_ns,
            decision_ns=one.entered.spent_ns, leave_decision_ns=one.left.spent_ns,
            view_digest=enter.view, landed=enter.landed, credits=enter.credits,
            leave_view_digest=leave.view, leave_landed=leave.landed, leave_credits=leave.credits,
            experts=enter.active, counts=enter.counts, placement=enter.placement, hit=enter.hit,
            demand_expert=enter.demand_expert, demand_slot=enter.demand_slot,
            prefetch_expert=enter.prefetch_expert, prefetch_slot=enter.prefetch_slot,
            leave_prefetch_expert=leave.prefetch_expert, leave_prefetch_slot=leave.prefetch_slot,
        )  # fmt: skip

    def forget_unfinished(self) -> None:
        """Drop the rows of a pass that was interrupted while it was being written down."""
        self.builder.forget_from(self._next)
