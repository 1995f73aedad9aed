"""Every rate in the project: metrics(runlog) for simulated and measured runs alike.

Measured passes are the decode passes outside warm-up; all figures are about them unless said
otherwise.

stall: per layer, from the moment a lane could begin to the join, minus the time it computed. The
GPU could begin at t1, or when the plan came (t2) where nothing could start earlier; the CPU at t2.
So it is time waited for a copy to land or for the other lane. idle: the same without the excuse of
the decision, from t1 for the GPU and from t0 for the CPU, which also waits while the dense part
runs.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from policies.errors import UserError
from traces.prefetch_outcomes import count_outcomes
from traces.run_info import RunLog
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

SECOND = 1e9


@dataclass(frozen=True)
class Metrics:
    """Figures of one run; seconds, bytes, shares in 0..1. NaN where there is nothing to divide by.

    tokens_per_second (TPS) = committed / decode seconds; seconds_per_token (TPOT) its inverse.
    time_to_first_token: mean over requests from the begin of prefill to the end of the first decode
    pass. end_to_end_tokens_per_second: committed / time from each request's begin to its end.
    hit rates: active and READY when the routing became known, per expert and counted by tokens.
    acceptance_reached = accepted / (accepted + rejected), a pass rejects at most one draft;
    acceptance_proposed = accepted / proposed.
    placement shares: of active experts, per expert.
    prefetches: useful = used while resident, late = needed while still on its way, wasted = evicted
    unused or never used; the first use decides.
    link_busy_share: part of decode time with a copy on the link.
    """

    requests: int
    passes: int
    committed_tokens: int
    decode_seconds: float
    tokens_per_second: float
    seconds_per_token: float
    time_to_first_token_seconds: float
    end_to_end_tokens_per_second: float
    tokens_per_pass: float
    mean_gamma: float
    acceptance_reached: float
    acceptance_proposed: float
    draft_seconds: float
    hit_rate_per_expert: float
    hit_rate_per_token: float
    share_gpu: float
    share_cpu: float
    share_fetch: float
    share_stream: float
    active_experts_per_layer: float
    bytes_copied: int
    bytes_demand: int
    bytes_stream: int
    bytes_prefetch: int
    prefetches: int
    prefetches_useful: int
    prefetches_late: int
    prefetches_wasted: int
    gpu_stall_seconds: float
    cpu_stall_seconds: float
    gpu_idle_seconds: float
    cpu_idle_seconds: float
    link_busy_share: float
    decision_seconds: float
    mean_layer_decision_seconds: float
    mean_draft_decision_seconds: float
    approximate: bool


def metrics(runlog: RunLog) -> Metrics:
    """All figures of `runlog`; UserError if it has no decode pass outside warm-up."""
    counted = runlog.passes[~runlog.passes["warmup"]]
    passes = counted[counted["phase"] == DECODE_PHASE]
    if passes.empty:
        raise UserError(
            f"run log of {runlog.info.policy!r}: no decode pass outside warm-up; run more requests"
        )
    layers = runlog.layers[runlog.layers["pass_index"].isin(passes["pass_index"])]
    drafts = runlog.drafts[runlog.drafts["pass_index"].isin(passes["pass_index"])]
    copies = runlog.copies[runlog.copies["pass_index"].isin(passes["pass_index"])]
    committed, seconds = int(passes["committed"].sum()), _seconds(passes, "begin_ns", "end_ns")
    accepted, proposed = int(passes["accepted"].sum()), int(passes["gamma"].sum())
    rejected = int((passes["accepted"] < passes["gamma"]).sum())
    first_token_seconds, request_seconds = _request_seconds(counted, passes)
    placement, hit = _joined(layers["placement"]), _joined(layers["hit"])
    counts = _joined(layers["counts"])
    size = {kind: int(copies["bytes"][copies["kind"] == kind].sum()) for kind in range(3)}
    useful, late, wasted = count_outcomes(runlog, copies)
    gpu_begin = _begin(layers, "gpu").clip(layers["t1_ns"], layers["t2_ns"])
    at_layers = int(layers["decision_ns"].sum()) + int(layers["leave_decision_ns"].sum())
    decisions = at_layers + int(drafts["decision_ns"].sum())
    return Metrics(
        requests=int(counted["request"].nunique()),
        passes=len(passes),
        committed_tokens=committed,
        decode_seconds=seconds,
        tokens_per_second=_ratio(committed, seconds),
        seconds_per_token=_ratio(seconds, committed),
        time_to_first_token_seconds=first_token_seconds,
        end_to_end_tokens_per_second=_ratio(committed, request_seconds),
        tokens_per_pass=_ratio(committed, len(passes)),
        mean_gamma=_ratio(proposed, len(passes)),
        acceptance_reached=_ratio(accepted, accepted + rejected),
        acceptance_proposed=_ratio(accepted, proposed),
        draft_seconds=_seconds(passes, "begin_ns", "draft_end_ns"),
        hit_rate_per_expert=_ratio(hit.sum(), len(hit)),
        hit_rate_per_token=_ratio((hit * counts).sum(), counts.sum()),
        share_gpu=_ratio((placement == GPU).sum(), len(placement)),
        share_cpu=_ratio((placement == CPU).sum(), len(placement)),
        share_fetch=_ratio((placement == FETCH).sum(), len(placement)),
        share_stream=_ratio((placement == STREAM).sum(), len(placement)),
        active_experts_per_layer=_ratio(len(placement), len(layers)),
        bytes_copied=sum(size.values()),
        bytes_demand=size[COPY_DEMAND],
        bytes_stream=size[COPY_STREAM],
        bytes_prefetch=size[COPY_PREFETCH],
        prefetches=useful + late + wasted,
        prefetches_useful=useful,
        prefetches_late=late,
        prefetches_wasted=wasted,
        gpu_stall_seconds=_waited(layers, gpu_begin, "gpu_busy_ns"),
        cpu_stall_seconds=_waited(layers, layers["t2_ns"], "cpu_busy_ns"),
        gpu_idle_seconds=_waited(layers, layers["t1_ns"], "gpu_busy_ns"),
        cpu_idle_seconds=_waited(layers, layers["t0_ns"], "cpu_busy_ns"),
        link_busy_share=_ratio(_link_busy_ns(runlog.copies, passes), seconds * SECOND),
        decision_seconds=decisions / SECOND,
        mean_layer_decision_seconds=_ratio(at_layers / SECOND, len(layers)),
        mean_draft_decision_seconds=_ratio(drafts["decision_ns"].sum() / SECOND, len(drafts)),
        approximate=runlog.info.approximate,
    )


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else float("nan")


def _seconds(table: pd.DataFrame, begin: str, end: str) -> float:
    return int((table[end] - table[begin]).sum()) / SECOND


def _joined(column: pd.Series) -> NDArray[np.int64]:
    """The lists of a column, one after the other."""
    lists = list(column)
    return np.concatenate(lists).astype(np.int64) if lists else np.empty(0, np.int64)


def _begin(layers: pd.DataFrame, lane: str) -> pd.Series:
    """When a lane began; t2 where it had nothing to do."""
    began, ended = layers[f"{lane}_begin_ns"], layers[f"{lane}_end_ns"]
    return began.where(ended > began, layers["t2_ns"])


def _waited(layers: pd.DataFrame, since: pd.Series, busy: str) -> float:
    waited = layers["join_ns"] - since - layers[busy]
    return int(waited.clip(lower=0).sum()) / SECOND


def _request_seconds(counted: pd.DataFrame, decode: pd.DataFrame) -> tuple[float, float]:
    """(mean time to the first token, sum of all requests' times), in seconds."""
    begins = counted.groupby("request")["begin_ns"].min()
    ends = decode.groupby("request")["end_ns"]
    first = (ends.min() - begins).dropna().to_numpy() / SECOND
    whole = (ends.max() - begins).dropna().to_numpy() / SECOND
    return float(first.mean()), float(whole.sum())


def _link_busy_ns(copies: pd.DataFrame, passes: pd.DataFrame) -> int:
    """Time inside `passes` with at least one copy on the link."""
    if copies.empty:
        return 0
    ordered = copies.sort_values("begin_ns")
    begin, end = ordered["begin_ns"].to_numpy(), ordered["landing_ns"].to_numpy()
    reach = np.maximum.accumulate(end)
    opens = np.concatenate([[True], begin[1:] > reach[:-1]])
    begins, ends = begin[opens], reach[np.append(np.flatnonzero(opens)[1:] - 1, len(reach) - 1)]
    before = np.concatenate([[0], np.cumsum(ends - begins)])

    def busy_until(time: NDArray[np.int64]) -> NDArray[np.int64]:
        index = np.searchsorted(begins, time, side="right")
        over = np.maximum(ends[np.maximum(index - 1, 0)] - time, 0) * (index > 0)
        until: NDArray[np.int64] = before[index] - over
        return until

    inside = busy_until(passes["end_ns"].to_numpy()) - busy_until(passes["begin_ns"].to_numpy())
    return int(inside.sum())
