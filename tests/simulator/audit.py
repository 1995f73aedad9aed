"""Reads a finished run log and checks the laws of the machine, without any engine code."""

from __future__ import annotations

from typing import Any

from policies.api import CPU, FETCH, GPU, STREAM
from policies.costs import CostTable
from simulator.settings import SimulationSettings
from traces.runlog import RunLog
from traces.runlog_schema import COPY_PREFETCH, COPY_STREAM, DECODE_PHASE


def audit(log: RunLog, costs: CostTable, settings: SimulationSettings) -> None:
    """Assertion error if the log breaks a law."""
    check_link(log, costs)
    held = Slots(log, settings)
    for passed in log.passes.itertuples(index=False):
        layers = log.layers[log.layers["pass_index"] == passed.pass_index]
        held.start(passed.pass_index, -1)
        for row in layers.itertuples(index=False):
            held.check_layer(row, passed.phase == DECODE_PHASE, costs)
            held.start(passed.pass_index, row.layer)
            check_layer_times(row, costs, settings)
    begins, ends = log.passes["begin_ns"].tolist(), log.passes["end_ns"].tolist()
    assert begins == [0, *ends[:-1]], "passes follow each other without a gap"


def check_link(log: RunLog, costs: CostTable) -> None:
    """One copy at a time, first in, first out, each of the same length."""
    free_ns = issued_ns = 0
    for number, copy in enumerate(log.copies.sort_values("copy_id").itertuples(index=False)):
        assert copy.copy_id == number
        assert copy.issue_ns >= issued_ns, "issued in the order of numbers"
        assert copy.begin_ns >= max(copy.issue_ns, free_ns), "serial"
        if copy.kind != COPY_STREAM:
            assert copy.begin_ns == max(copy.issue_ns, free_ns), "the link does not idle"
        assert copy.landing_ns == copy.begin_ns + costs.copy_latency_ns + costs.copy_ns
        issued_ns, free_ns = copy.issue_ns, copy.landing_ns


def check_layer_times(row: Any, costs: CostTable, settings: SimulationSettings) -> None:
    """t0 <= t1 <= t2, both lanes after their start, join after both."""
    assert row.t0_ns <= row.t1_ns and row.t1_ns + costs.d2h_ns + row.decision_ns <= row.t2_ns
    placed = row.placement.tolist()
    gpu = [kind for kind in placed if kind != CPU]
    early = settings.launch == "early" and GPU in gpu
    if gpu:
        assert row.gpu_begin_ns >= (row.t1_ns if early else row.t2_ns)
        assert row.gpu_end_ns - row.gpu_begin_ns >= row.gpu_busy_ns
    if CPU in placed:
        assert row.cpu_begin_ns == row.t2_ns + costs.dispatch_ns
        work_ns = sum(
            int(costs.cpu_ns[count])
            for kind, count in zip(placed, row.counts.tolist(), strict=True)
            if kind == CPU
        )
        assert work_ns <= row.cpu_busy_ns <= -(-1024 * work_ns // costs.contention)
        if gpu and settings.lanes == "serial":
            assert row.gpu_begin_ns >= row.cpu_end_ns + costs.return_ns
    returned_ns = row.cpu_end_ns + costs.return_ns if CPU in placed else 0
    assert row.join_ns == max(row.gpu_end_ns if gpu else 0, returned_ns)


class Slots:
    """Replays which copy holds which slot, by place in the run, and what is read from it."""

    def __init__(self, log: RunLog, settings: SimulationSettings) -> None:
        self.experts = log.info.model.experts
        self.settings = settings
        self.copies = {
            place: part.sort_values("copy_id")
            for place, part in log.copies.groupby(["pass_index", "layer"])
        }
        self.holder: dict[int, Any] = {}
        self.slot_of: dict[int, int] = {}
        self.read_until: dict[int, int] = {}

    def start(self, pass_index: int, layer: int) -> None:
        """Prefetches issued at this place take their slots. A layer's demand copies took theirs
        when the layer was checked."""
        for copy in self._issued(pass_index, layer):
            if copy.kind == COPY_PREFETCH:
                self._take(copy)

    def check_layer(self, row: Any, decode: bool, costs: CostTable) -> None:
        """Readiness by landing times, and nothing computed before its copy has landed."""
        base = row.layer * self.experts
        demand = set(row.demand_expert.tolist())
        demanded = {
            copy.expert: copy
            for copy in self._issued(row.pass_index, row.layer)
            if copy.expert in demand and copy.kind != COPY_PREFETCH
        }
        for expert, count, kind, hit in zip(
            row.experts, row.counts, row.placement, row.hit, strict=True
        ):
            key = base + int(expert)
            slot = self.slot_of.get(key)
            ready = slot is not None and self.holder[slot].landing_ns <= row.t0_ns
            if decode:
                assert bool(hit) == ready, "hit = READY at t0"
            gpu_ns = int(costs.gpu_ns[count])
            if kind == GPU:
                assert ready and row.gpu_end_ns >= row.t1_ns + gpu_ns
                self.read_until[slot] = row.gpu_end_ns
            elif kind in (FETCH, STREAM):
                copy = demanded.get(key) or self.holder[self.slot_of[key]]
                assert row.gpu_end_ns >= max(copy.landing_ns, row.t2_ns) + gpu_ns
                if key not in demanded:
                    self.read_until[self.slot_of[key]] = row.gpu_end_ns
        for copy in demanded.values():
            self._take(copy)
            self.read_until[copy.slot] = row.gpu_end_ns

    def _issued(self, pass_index: int, layer: int) -> list[Any]:
        part = self.copies.get((pass_index, layer))
        return [] if part is None else list(part.itertuples(index=False))

    def _take(self, copy: Any) -> None:
        slots = self.settings.slots
        if copy.kind == COPY_STREAM:
            assert slots <= copy.slot < slots + self.settings.staging
            return
        assert 0 <= copy.slot < slots, "no more slots than there are"
        assert copy.expert not in self.slot_of, "one slot for an expert"
        before = self.holder.get(copy.slot)
        if before is not None:
            assert before.landing_ns <= copy.begin_ns, "a slot is filled by one copy at a time"
            assert self.read_until.get(copy.slot, 0) <= copy.begin_ns, "no reader is overwritten"
            assert copy.generation > before.generation
            del self.slot_of[before.expert]
        self.holder[copy.slot] = copy
        self.slot_of[copy.expert] = copy.slot
