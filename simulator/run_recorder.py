"""RunRecorder: keeps passes until all their times are known, then writes them in order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from policies.decision import Decision
from simulator.host import Decided
from simulator.lanes import LaneTimes
from simulator.link import UNKNOWN, Copy
from traces.runlog import RunLogBuilder


@dataclass
class LayerRecord:
    """One (pass, layer). `decided`: the decision at its start; `left`: the one after its join."""

    layer: int
    t0_ns: int
    t1_ns: int
    decision: Decision
    decided: Decided
    lanes: LaneTimes
    gpu_busy_ns: int
    left: Decision | None = None
    leave_decision_ns: int = 0


@dataclass
class PassRecord:
    """One pass: `columns` of the run log's passes, rows of its layers and of its draft steps."""

    columns: dict[str, Any]
    layers: list[LayerRecord] = field(default_factory=list)
    drafts: list[dict[str, Any]] = field(default_factory=list)

    def complete(self) -> bool:
        """True if every decision is over: an early launch may join before its plan is there."""
        return all(layer.decided.done_ns != UNKNOWN for layer in self.layers)


class RunRecorder:
    """Writes to `builder`: copies when they land, passes in order."""

    def __init__(self, builder: RunLogBuilder, expert_bytes: int) -> None:
        self.builder = builder
        self.expert_bytes = expert_bytes
        self._waiting: deque[PassRecord] = deque()

    def add_copy(self, copy: Copy) -> None:
        """A copy has landed."""
        self.builder.add_copy(
            copy_id=copy.number, expert=copy.expert, slot=copy.slot, generation=copy.generation,
            kind=copy.kind, pass_index=copy.pass_index, layer=copy.layer, bytes=self.expert_bytes,
            issue_ns=copy.issue_ns, begin_ns=copy.begin_ns, landing_ns=copy.landing_ns,
        )  # fmt: skip

    def add_pass(self, record: PassRecord) -> None:
        """A pass has ended; it is written as soon as it is complete."""
        self._waiting.append(record)
        self.write_complete()

    def write_complete(self) -> None:
        """Write the passes whose times are all known, up to the first that has to wait."""
        while self._waiting and self._waiting[0].complete():
            self._write(self._waiting.popleft())

    def _write(self, record: PassRecord) -> None:
        index = record.columns["pass_index"]
        for draft in record.drafts:
            self.builder.add_draft(pass_index=index, **draft)
        for layer in record.layers:
            self.builder.add_layer(pass_index=index, **_layer_columns(layer))
        self.builder.add_pass(**record.columns)


def draft_columns(
    step: int, token: int, time_ns: int, decision_ns: int, decision: Decision
) -> dict[str, Any]:
    """Columns of one draft step."""
    return {
        "step": step,
        "token": token,
        "t_ns": time_ns,
        "decision_ns": decision_ns,
        "view_digest": decision.view,
        "landed": decision.landed,
        "credits": decision.credits,
        "prefetch_expert": decision.prefetch_expert,
        "prefetch_slot": decision.prefetch_slot,
    }


def _layer_columns(layer: LayerRecord) -> dict[str, Any]:
    decision, lanes, plan_ns = layer.decision, layer.lanes, layer.decided.done_ns
    columns: dict[str, Any] = {
        "layer": layer.layer,
        "t0_ns": layer.t0_ns,
        "t1_ns": layer.t1_ns,
        "t2_ns": plan_ns,
        # A lane without work has begin = end: at the plan, which gave it none.
        "gpu_begin_ns": plan_ns if lanes.gpu_begin_ns == UNKNOWN else lanes.gpu_begin_ns,
        "gpu_end_ns": plan_ns if lanes.gpu_end_ns == UNKNOWN else lanes.gpu_end_ns,
        "gpu_busy_ns": layer.gpu_busy_ns,
        "cpu_begin_ns": plan_ns if lanes.cpu_begin_ns == UNKNOWN else lanes.cpu_begin_ns,
        "cpu_end_ns": plan_ns if lanes.cpu_end_ns == UNKNOWN else lanes.cpu_end_ns,
        "join_ns": lanes.join_ns,
        "decision_ns": layer.decided.decision_ns,
        "leave_decision_ns": layer.leave_decision_ns,
        "view_digest": decision.view,
        "landed": decision.landed,
        "credits": decision.credits,
        "experts": decision.active,
        "counts": decision.counts,
        "placement": decision.placement,
        "hit": decision.hit,
        "demand_expert": decision.demand_expert,
        "demand_slot": decision.demand_slot,
        "prefetch_expert": decision.prefetch_expert,
        "prefetch_slot": decision.prefetch_slot,
    }
    if layer.left is not None:
        columns |= {
            "leave_view_digest": layer.left.view,
            "leave_landed": layer.left.landed,
            "leave_credits": layer.left.credits,
            "leave_prefetch_expert": layer.left.prefetch_expert,
            "leave_prefetch_slot": layer.left.prefetch_slot,
        }
    return columns
