"""What every lane did during one pass, as intervals, from a run log (simulated or measured)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from policies.errors import UserError
from traces.runlog import RunLog
from traces.runlog_schema import FETCH, GPU, NO_LAYER, STREAM

Lane = Literal["gpu", "cpu", "link", "host"]
LANES: tuple[Lane, ...] = ("gpu", "cpu", "link", "host")
COPY_KINDS = ("demand", "stream", "prefetch")


@dataclass(frozen=True)
class Interval:
    """`kind`: "draft", "dense", "experts", "head", "decision", or a kind of copy ("demand",
    "stream", "prefetch"). Times in ns on the run's clock; copies may reach beyond the pass."""

    lane: Lane
    begin_ns: int
    end_ns: int
    label: str
    kind: str


def pass_lanes(runlog: RunLog, pass_index: int) -> list[Interval]:
    """All intervals of pass `pass_index`, sorted by lane (gpu, cpu, link, host), then by time.

    Experts intervals leave out what the GPU waits for copies: the busy time of a layer is known,
    not that of each expert, so its experts are taken to be equally long.
    """
    passes = runlog.passes[runlog.passes["pass_index"] == pass_index]
    if passes.empty:
        last = runlog.passes["pass_index"].max()
        raise UserError(f"no pass {pass_index} in this run log; passes go up to {last}")
    row = passes.iloc[0]
    layers = runlog.layers[runlog.layers["pass_index"] == pass_index]
    drafts = runlog.drafts[runlog.drafts["pass_index"] == pass_index]
    intervals = [
        *_drafting(row, drafts),
        *(interval for layer in _rows(layers) for interval in _layer(layer, runlog)),
        *_copies(runlog, row),
    ]
    head_ns = int(layers["join_ns"].max()) if len(layers) else int(row["draft_end_ns"])
    if head_ns < row["end_ns"]:
        intervals.append(Interval("gpu", head_ns, int(row["end_ns"]), "head", "head"))
    return sorted(intervals, key=lambda one: (LANES.index(one.lane), one.begin_ns, one.end_ns))


def _rows(table: pd.DataFrame) -> Iterator[Any]:
    return table.itertuples(index=False)


def _drafting(row: pd.Series, drafts: pd.DataFrame) -> Iterator[Interval]:
    """Draft steps on the GPU and the host's decisions after them, one after another."""
    begin_ns = int(row["begin_ns"])
    host_ns = begin_ns
    for step in _rows(drafts):
        label = f"draft step {step.step}"
        yield Interval("gpu", begin_ns, int(step.t_ns), label, "draft")
        begin_ns = int(step.t_ns)
        host_ns = max(begin_ns, host_ns)
        if step.decision_ns:
            yield Interval("host", host_ns, host_ns + int(step.decision_ns), label, "decision")
            host_ns += int(step.decision_ns)
    if begin_ns < row["draft_end_ns"]:
        yield Interval("gpu", begin_ns, int(row["draft_end_ns"]), "draft", "draft")


def _layer(layer: Any, runlog: RunLog) -> Iterator[Interval]:
    label = f"layer {layer.layer}"
    yield Interval("gpu", int(layer.t0_ns), int(layer.t1_ns), label, "dense")
    for begin_ns, end_ns in gpu_blocks(layer, runlog):
        yield Interval("gpu", begin_ns, end_ns, label, "experts")
    if layer.cpu_begin_ns < layer.cpu_end_ns:
        yield Interval("cpu", int(layer.cpu_begin_ns), int(layer.cpu_end_ns), label, "experts")
    plan_ns = int(layer.t2_ns)
    if layer.decision_ns:
        yield Interval("host", plan_ns - int(layer.decision_ns), plan_ns, label, "decision")
    if layer.leave_decision_ns:
        begin_ns = max(int(layer.join_ns), plan_ns)
        end_ns = begin_ns + int(layer.leave_decision_ns)
        yield Interval("host", begin_ns, end_ns, f"end of {label}", "decision")


def gpu_blocks(layer: Any, runlog: RunLog) -> list[tuple[int, int]]:
    """(begin, end) of the stretches in which the GPU computes experts of `layer`, a row of the run
    log: residents first, then copied ones as they land."""
    begin_ns, end_ns = int(layer.gpu_begin_ns), int(layer.gpu_end_ns)
    busy_ns = int(layer.gpu_busy_ns)
    if busy_ns >= end_ns - begin_ns:
        return [(begin_ns, end_ns)] if begin_ns < end_ns else []
    placement = np.asarray(layer.placement)
    keys = int(layer.layer) * runlog.info.model.experts + np.asarray(layer.experts, np.int64)
    residents = int((placement == GPU).sum())
    landings = _landings(keys[(placement == FETCH) | (placement == STREAM)], layer, runlog)
    number = residents + len(landings)
    blocks: list[tuple[int, int]] = []
    done = 0
    for place, ready_ns in enumerate([begin_ns] * residents + landings):
        # Shares by number, so that their lengths add up to the busy time exactly.
        length_ns = busy_ns * (place + 1) // number - busy_ns * place // number
        reach_ns = blocks[-1][1] if blocks else begin_ns
        start_ns = min(max(reach_ns, ready_ns), end_ns - (busy_ns - done))
        done += length_ns
        if blocks and start_ns <= reach_ns:
            blocks[-1] = (blocks[-1][0], reach_ns + length_ns)
        else:
            blocks.append((start_ns, start_ns + length_ns))
    return blocks


def _landings(keys: npt.NDArray[np.int64], layer: Any, runlog: RunLog) -> list[int]:
    """When the copies that `layer` waits for land, in that order; a copy of each of `keys`."""
    copies = runlog.copies
    awaited = copies[copies["expert"].isin(keys) & (copies["landing_ns"] > layer.t0_ns)]
    return sorted(int(first) for first in awaited.groupby("expert")["landing_ns"].min())


def _copies(runlog: RunLog, row: pd.Series) -> Iterator[Interval]:
    copies, experts = runlog.copies, runlog.info.model.experts
    during = (copies["begin_ns"] < row["end_ns"]) & (copies["landing_ns"] > row["begin_ns"])
    for copy in _rows(copies[during]):
        issued = "while drafting" if copy.layer == NO_LAYER else f"at layer {copy.layer}"
        label = f"layer {copy.expert // experts} expert {copy.expert % experts}, issued {issued}"
        kind = COPY_KINDS[copy.kind]
        yield Interval("link", int(copy.begin_ns), int(copy.landing_ns), label, kind)
