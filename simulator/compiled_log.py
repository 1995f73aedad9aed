"""From the compiled loop's buffers to columns of the run log."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.compiled_buffers import (
    ACTIVES,
    DEMANDS,
    DRAFT_COLUMNS,
    DRAFT_PREFETCHES,
    DRAFTS,
    LAYER_COLUMNS,
    LAYERS,
    LEAVES,
    LISTED_ACTIVE,
    LISTED_DEMAND,
    LISTED_DRAFT,
    LISTED_LEAVE,
    LISTED_PREFETCH,
    PASS_COLUMNS,
    PASSES,
    PREFETCHES,
    Buffers,
)
from simulator.compiled_state import (
    COPIES,
    COPY_BEGIN,
    COPY_EXPERT,
    COPY_GENERATION,
    COPY_ID,
    COPY_ISSUE,
    COPY_KIND,
    COPY_LANDING,
    COPY_LAYER,
    COPY_PASS,
    COPY_SLOT,
    NOW,
    ON_LINK,
    Machine,
)

Columns = dict[str, Any]
COPY_NAMES = {
    "copy_id": COPY_ID, "expert": COPY_EXPERT, "slot": COPY_SLOT, "generation": COPY_GENERATION,
    "kind": COPY_KIND, "pass_index": COPY_PASS, "layer": COPY_LAYER, "issue_ns": COPY_ISSUE,
    "begin_ns": COPY_BEGIN, "landing_ns": COPY_LANDING,
}  # fmt: skip


def pass_columns(buffers: Buffers) -> Columns:
    """Columns of the passes in the buffers, as views."""
    rows = buffers.passes[: buffers.used[PASSES]]
    columns: Columns = {name: rows[:, index] for index, name in enumerate(PASS_COLUMNS)}
    columns["warmup"] = columns["warmup"] != 0
    return columns


def layer_columns(buffers: Buffers) -> Columns:
    """Columns of the layers in the buffers; lists as (offsets, values)."""
    used = buffers.used
    rows = buffers.layers[: used[LAYERS]]
    columns: Columns = {name: rows[:, index] for index, name in enumerate(LAYER_COLUMNS)}
    columns["view_digest"] = buffers.layer_views[: used[LAYERS], 0]
    columns["leave_view_digest"] = buffers.layer_views[: used[LAYERS], 1]
    listed = _offsets(rows[:, LISTED_ACTIVE])
    for index, name in enumerate(("experts", "counts", "placement", "hit")):
        columns[name] = (listed, buffers.actives[: used[ACTIVES], index])
    for prefix, number, table, kept in (
        ("demand", LISTED_DEMAND, buffers.demands, DEMANDS),
        ("prefetch", LISTED_PREFETCH, buffers.prefetches, PREFETCHES),
        ("leave_prefetch", LISTED_LEAVE, buffers.leaves, LEAVES),
    ):
        columns |= _pairs(prefix, rows[:, number], table[: used[kept]])
    return columns


def draft_columns(buffers: Buffers) -> Columns:
    """Columns of the draft steps in the buffers."""
    used = buffers.used
    rows = buffers.drafts[: used[DRAFTS]]
    columns: Columns = {name: rows[:, index] for index, name in enumerate(DRAFT_COLUMNS)}
    columns["view_digest"] = buffers.draft_views[: used[DRAFTS]]
    listed = buffers.draft_prefetches[: used[DRAFT_PREFETCHES]]
    return columns | _pairs("prefetch", rows[:, LISTED_DRAFT], listed)


def copy_columns(machine: Machine, begin: int, expert_bytes: int) -> Columns:
    """Columns of the copies from row `begin` on."""
    rows = machine.copies[begin : machine.clock[COPIES]]
    columns: Columns = {name: rows[:, index] for name, index in COPY_NAMES.items()}
    columns["bytes"] = np.full(len(rows), expert_bytes, np.int64)
    return columns


def clear(buffers: Buffers) -> None:
    """Forget the rows that have been taken."""
    buffers.used[:] = 0


def keep_flying(machine: Machine) -> int:
    """Drop copies that landed before the next pass can begin; returns how many stay."""
    clock, copies = machine.clock, machine.copies
    number = int(clock[COPIES])
    # Landings ascend: the link is first in, first out.
    over = int(np.searchsorted(copies[:number, COPY_LANDING], clock[NOW], side="right"))
    copies[: number - over] = copies[over:number].copy()
    clock[COPIES] = number - over
    clock[ON_LINK] = 0
    return number - over


def _offsets(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)])


def _pairs(prefix: str, lengths: npt.NDArray[np.int64], table: npt.NDArray[np.int32]) -> Columns:
    offsets = _offsets(lengths)
    return {f"{prefix}_expert": (offsets, table[:, 0]), f"{prefix}_slot": (offsets, table[:, 1])}
