"""Runs whose log is added up as it is made and then forgotten: for sweeps, and for traces of any
length, since memory does not grow with the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import numpy.typing as npt

from policies.composed import ComposedPolicy
from policies.costs import CostTable
from policies.errors import UserError
from simulator.compiled_log import Columns, copy_columns, draft_columns, layer_columns, pass_columns
from simulator.compiled_run import Chunk, play_run
from simulator.requirements import check_requirements
from simulator.settings import SimulationSettings
from traces.replay import Replay
from traces.runlog_schema import (
    COPY_DEMAND,
    COPY_PREFETCH,
    COPY_STREAM,
    CPU,
    DECODE_PHASE,
    FETCH,
    GPU,
    STREAM,
)


@dataclass
class Totals:
    """Sums over the decode passes outside warm-up, in tokens, experts, bytes and ns; the terms are
    those of traces.metrics, which divides the same sums. `hits`: active and READY when the routing
    became known; `token_hits`: the same counted by rows, of `token_uses`."""

    passes: int = 0
    layers: int = 0
    committed_tokens: int = 0
    accepted_tokens: int = 0
    proposed_tokens: int = 0
    decode_ns: int = 0
    draft_ns: int = 0
    active_experts: int = 0
    hits: int = 0
    token_uses: int = 0
    token_hits: int = 0
    on_gpu: int = 0
    on_cpu: int = 0
    fetched: int = 0
    streamed: int = 0
    bytes_demand: int = 0
    bytes_stream: int = 0
    bytes_prefetch: int = 0
    gpu_stall_ns: int = 0
    cpu_stall_ns: int = 0
    gpu_idle_ns: int = 0
    cpu_idle_ns: int = 0
    decision_ns: int = 0

    @property
    def tokens_per_second(self) -> float:
        """Committed tokens per second of decoding; NaN without a pass."""
        return 1e9 * self.committed_tokens / self.decode_ns if self.decode_ns else float("nan")

    @property
    def hit_rate_per_expert(self) -> float:
        """Share of active experts that were READY; NaN without one."""
        return self.hits / self.active_experts if self.active_experts else float("nan")


def simulate_totals(
    replay: Replay,
    policy: ComposedPolicy,
    costs: CostTable,
    settings: SimulationSettings,
    progress: Callable[[int, int], None] | None = None,
    after_request: Callable[[Totals], None] | None = None,
) -> Totals:
    """The sums of the run that simulator.compiled.simulate_compiled would log; same arguments, same
    refusals, and UserError without a decode pass outside warm-up. `after_request` sees the sums so
    far after each request, and may stop the run by raising."""
    costs.validate()
    check_requirements(replay, policy, costs, settings)
    totals = Totals()

    def add(chunk: Chunk) -> None:
        part = _chunk_totals(chunk, costs.expert_bytes)
        for field in fields(Totals):
            setattr(totals, field.name, getattr(totals, field.name) + getattr(part, field.name))

    seen = None if after_request is None else partial(after_request, totals)
    play_run(replay, policy, costs, settings, add, progress, seen)
    if totals.passes == 0:
        raise UserError(
            f"run of {policy.name!r}: no decode pass outside warm-up; play more requests"
        )
    return totals


def _chunk_totals(chunk: Chunk, expert_bytes: int) -> Totals:
    passes = pass_columns(chunk.buffers)
    counted = (passes["phase"] == DECODE_PHASE) & ~passes["warmup"]
    numbers = passes["pass_index"][counted]
    layers, drafts = layer_columns(chunk.buffers), draft_columns(chunk.buffers)
    copies = copy_columns(chunk.machine, chunk.first_copy, expert_bytes)
    in_layers = np.isin(layers["pass_index"], numbers)
    in_copies = np.isin(copies["pass_index"], numbers)
    offsets, _ = layers["experts"]
    in_actives = np.repeat(in_layers, np.diff(offsets))
    placement, hit, uses = (
        layers[name][1][in_actives].astype(np.int64) for name in ("placement", "hit", "counts")
    )
    kind = copies["kind"][in_copies]
    size = {one: expert_bytes * _sum(kind == one) for one in range(3)}
    layer = {
        name: column[in_layers] for name, column in layers.items() if not isinstance(column, tuple)
    }
    in_drafts = np.isin(drafts["pass_index"], numbers)
    decision_ns = _sum(layer["decision_ns"]) + _sum(layer["leave_decision_ns"])
    return Totals(
        passes=len(numbers),
        layers=_sum(in_layers),
        committed_tokens=_sum(passes["committed"][counted]),
        accepted_tokens=_sum(passes["accepted"][counted]),
        proposed_tokens=_sum(passes["gamma"][counted]),
        decode_ns=_sum((passes["end_ns"] - passes["begin_ns"])[counted]),
        draft_ns=_sum((passes["draft_end_ns"] - passes["begin_ns"])[counted]),
        active_experts=len(hit),
        hits=_sum(hit),
        token_uses=_sum(uses),
        token_hits=_sum(hit * uses),
        on_gpu=_sum(placement == GPU),
        on_cpu=_sum(placement == CPU),
        fetched=_sum(placement == FETCH),
        streamed=_sum(placement == STREAM),
        bytes_demand=size[COPY_DEMAND],
        bytes_stream=size[COPY_STREAM],
        bytes_prefetch=size[COPY_PREFETCH],
        gpu_stall_ns=_waited(layer, _gpu_ready(layer), "gpu_busy_ns"),
        cpu_stall_ns=_waited(layer, layer["t2_ns"], "cpu_busy_ns"),
        gpu_idle_ns=_waited(layer, layer["t1_ns"], "gpu_busy_ns"),
        cpu_idle_ns=_waited(layer, layer["t0_ns"], "cpu_busy_ns"),
        decision_ns=decision_ns + _sum(drafts["decision_ns"][in_drafts]),
    )


def _gpu_ready(layer: Columns) -> npt.NDArray[np.int64]:
    """When the GPU could begin: at its begin, t2 without work, within t1..t2."""
    begin = np.where(
        layer["gpu_end_ns"] > layer["gpu_begin_ns"], layer["gpu_begin_ns"], layer["t2_ns"]
    )
    return np.clip(begin, layer["t1_ns"], layer["t2_ns"])


def _waited(layer: Columns, since: npt.NDArray[np.int64], busy: str) -> int:
    return _sum(np.maximum(layer["join_ns"] - since - layer[busy], 0))


def _sum(values: npt.NDArray[np.generic]) -> int:
    return int(values.sum())
