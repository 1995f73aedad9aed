"""Nulls of a trace: the same experts as often, in random order. What a policy still gains there,
it gains from popularity alone."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.generated import SYNTHETIC
from traces.reader import Trace, open_trace
from traces.rows import DECODE, RowBatch, build_rows
from traces.text_rows import committed_rows
from traces.writer import TraceWriter

Within = Literal["trace", "request", "layer"]
WITHIN: Sequence[str] = get_args(Within)


def write_shuffled(trace: Trace, destination: str | Path, within: str, seed: int) -> Trace:
    """The committed rows of `trace` with their routing in random order, as a trace of kind text.

    within: "trace" moves whole rows anywhere; "request" only inside their request, so that its
    popularity stays; "layer" moves each layer by itself, so that layers no longer agree either.
    Tokens stay where they are, so routing tells nothing of them; prompts are left out; predictions
    of next layers move with their row, and are left out where layers part.
    """
    if within not in WITHIN:
        raise UserError(f"within={within}: expected one of {', '.join(WITHIN)}")
    rows = committed_rows(trace.load(), trace.manifest)
    if len(rows) == 0:
        raise UserError(f"{trace.path}: no rows to shuffle")
    columns = trace.manifest.columns
    if within == "layer":
        columns = tuple(name for name in columns if name == "router_weights")
    manifest = replace(
        trace.manifest,
        kind="text",
        draft=None,
        gamma_max=0,
        workload=f"{trace.manifest.workload} shuffled",
        recorder="shuffled",
        columns=columns,
        notes=trace.manifest.notes
        | {
            SYNTHETIC: f"shuffled within {within}",
            "seed": str(seed),
            "shuffled from": trace.digest,
        },
    )
    with TraceWriter(destination, manifest) as writer:
        writer.append(_shuffled(rows, within, seed))
    return open_trace(destination)


def _shuffled(rows: RowBatch, within: str, seed: int) -> RowBatch:
    generator = np.random.default_rng(seed)
    layers = rows.experts.shape[1]
    if within == "layer":
        orders = [generator.permutation(len(rows)) for _ in range(layers)]
    elif within == "trace":
        orders = [generator.permutation(len(rows))] * layers
    else:
        key = generator.random(len(rows))
        orders = [np.lexsort((key, rows.request))] * layers
    order = np.stack(orders, axis=1)
    return build_rows(
        request=rows.request,
        phase=DECODE,
        start=rows.start + rows.row,
        row=0,
        input_token=rows.input_token,
        target_choice=rows.target_choice,
        match=False,
        experts=_moved(rows.experts, order),
        router_weights=None if rows.router_weights is None else _moved(rows.router_weights, order),
        next_layer=None
        if rows.next_layer is None or within == "layer"
        else rows.next_layer[:, order[:, 0]],
    )


def _moved(values: NDArray[np.generic], order: NDArray[np.int64]) -> NDArray[np.generic]:
    """[n, L, K] with row order[i, l] of layer l in place i."""
    moved: NDArray[np.generic] = np.take_along_axis(values, order[:, :, None], axis=0)
    return moved
