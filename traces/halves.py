"""Parts and nulls of a trace, written as traces of their own: one half of the requests, and the
same with all routing in random order."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from policies.errors import UserError
from traces.reader import Trace, open_trace
from traces.rows import DECODE, RowBatch
from traces.writer import TraceWriter

Split = Literal["development", "held_out"]


def write_half(trace: Trace, split: Split, requests: int, destination: Path) -> Trace:
    """The first `requests` of the first (development) or second half of the requests, by order."""
    rows = trace.load()
    ids = np.unique(rows.request)
    half = len(ids) // 2
    chosen = ids[:half] if split == "development" else ids[half:]
    if requests > len(chosen):
        raise UserError(
            f"{trace.path}: {requests} requests asked for, the {split} half has {len(chosen)}"
        )
    return _write(trace, rows.take(np.isin(rows.request, chosen[:requests])), "", destination)


def write_null(trace: Trace, seed: int, destination: Path) -> Trace:
    """The decode rows' routing in random order, whole rows at a time over all requests: how often
    an expert is used stays, when and after which token does not. Tokens, acceptance and prefill
    stay as they were."""
    rows = trace.load()
    decode = np.flatnonzero(rows.phase == DECODE)
    order = np.arange(len(rows))
    order[decode] = np.random.default_rng(seed).permutation(decode)
    shuffled = replace(
        rows,
        experts=rows.experts[order],
        router_weights=None if rows.router_weights is None else rows.router_weights[order],
        next_layer=None if rows.next_layer is None else rows.next_layer[:, order],
    )
    return _write(trace, shuffled, ", routing shuffled", destination)


def _write(trace: Trace, rows: RowBatch, suffix: str, destination: Path) -> Trace:
    manifest = replace(trace.manifest, workload=trace.manifest.workload + suffix)
    with TraceWriter(destination, manifest) as writer:
        writer.append(rows)
    return open_trace(destination)
