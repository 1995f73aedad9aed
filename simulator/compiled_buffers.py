"""Buffers that the compiled loop writes a run's log into, some passes at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from policies.plan import PREFETCH_LIMIT

# Entries of `used`.
PASSES = 0
LAYERS = 1
DRAFTS = 2
ACTIVES = 3
DEMANDS = 4
PREFETCHES = 5
LEAVES = 6
DRAFT_PREFETCHES = 7
TABLES = 8

PASS_COLUMNS = (
    "request", "pass_index", "phase", "start_position", "gamma", "rows", "accepted", "committed",
    "begin_ns", "draft_end_ns", "end_ns", "warmup",
)  # fmt: skip
LAYER_COLUMNS = (
    "pass_index", "layer", "t0_ns", "t1_ns", "t2_ns", "gpu_begin_ns", "gpu_end_ns", "gpu_busy_ns",
    "cpu_begin_ns", "cpu_end_ns", "cpu_busy_ns", "join_ns", "decision_ns", "leave_decision_ns",
    "landed", "credits", "leave_landed", "leave_credits",
)  # fmt: skip
# After them, the number of entries that the layer has in each list.
LISTED_ACTIVE = len(LAYER_COLUMNS)
LISTED_DEMAND = LISTED_ACTIVE + 1
LISTED_PREFETCH = LISTED_ACTIVE + 2
LISTED_LEAVE = LISTED_ACTIVE + 3
LAYER_WIDTH = LISTED_ACTIVE + 4
DRAFT_COLUMNS = ("pass_index", "step", "token", "t_ns", "decision_ns", "landed", "credits")
LISTED_DRAFT = len(DRAFT_COLUMNS)
DRAFT_WIDTH = LISTED_DRAFT + 1

CHUNK_BYTES = 16 << 20


class Buffers(NamedTuple):
    """used int64 [TABLES]: rows in use; passes, layers, drafts int64 [capacity, columns];
    layer_views uint64 [capacity, 2] (entry, leave), draft_views uint64 [capacity]; the lists, one
    after the other: actives int32 [capacity, 4] (expert, count, placement, hit), demands,
    prefetches, leaves, draft_prefetches int32 [capacity, 2] (expert, slot)."""

    used: npt.NDArray[np.int64]
    passes: npt.NDArray[np.int64]
    layers: npt.NDArray[np.int64]
    drafts: npt.NDArray[np.int64]
    layer_views: npt.NDArray[np.uint64]
    draft_views: npt.NDArray[np.uint64]
    actives: npt.NDArray[np.int32]
    demands: npt.NDArray[np.int32]
    prefetches: npt.NDArray[np.int32]
    leaves: npt.NDArray[np.int32]
    draft_prefetches: npt.NDArray[np.int32]


class PassBounds(NamedTuple):
    """The most that one pass can add: layers, draft steps, active experts of all layers, copies."""

    layers: int
    drafts: int
    actives: int
    copies: int


def pass_bounds(layers: int, experts: int, top_k: int, gamma: int, rows: int) -> PassBounds:
    """`rows`: of the longest pass, prefill included."""
    actives = layers * min(experts, rows * top_k)
    moves = (2 * layers + gamma) * PREFETCH_LIMIT
    return PassBounds(layers, gamma, actives, actives + moves)


def new_buffers(bounds: PassBounds) -> Buffers:
    """Room for as many passes as CHUNK_BYTES hold, at least one."""
    one = 8 * (bounds.layers * (LAYER_WIDTH + 2) + bounds.drafts * (DRAFT_WIDTH + 1))
    one += 24 * bounds.actives + 8 * PREFETCH_LIMIT * (2 * bounds.layers + bounds.drafts)
    passes = max(1, min(1024, CHUNK_BYTES // one))
    layers, drafts = passes * bounds.layers, passes * bounds.drafts
    return Buffers(
        np.zeros(TABLES, np.int64),
        np.zeros((passes, len(PASS_COLUMNS)), np.int64),
        np.zeros((layers, LAYER_WIDTH), np.int64),
        np.zeros((drafts, DRAFT_WIDTH), np.int64),
        np.zeros((layers, 2), np.uint64),
        np.zeros(drafts, np.uint64),
        np.zeros((passes * bounds.actives, 4), np.int32),
        np.zeros((passes * bounds.actives, 2), np.int32),
        np.zeros((layers * PREFETCH_LIMIT, 2), np.int32),
        np.zeros((layers * PREFETCH_LIMIT, 2), np.int32),
        np.zeros((drafts * PREFETCH_LIMIT, 2), np.int32),
    )
