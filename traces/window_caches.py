"""LRU and Belady over the passes of a run, event by event: a verify window needs its set of experts
at once. Beside it the same by single accesses, as most published hit rates are counted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traces.caches import belady_hits, capacity_of, lru_hits
from traces.runlog import RunLog
from traces.runlog_schema import DECODE_PHASE
from traces.set_caches import belady_set_hits, lru_set_hits


@dataclass(frozen=True)
class WindowHits:
    """Hit rates, 0..1. Of accesses, one per row and chosen expert, where a row finds what an
    earlier row of its window loaded; of windows, one lookup per distinct expert, before anything is
    loaded. NaN without lookups."""

    lru_access: float
    belady_access: float
    lru_window: float
    belady_window: float


def window_hit_rates(
    windows: Sequence[NDArray[np.uint16]], number: int, ratio: float
) -> WindowHits:
    """One cache per layer of `number` experts; `windows`: uint16 [rows, L, K] of each pass."""
    if not windows:
        return WindowHits(*[float("nan")] * 4)
    capacity = capacity_of(ratio, number)
    hits, lookups = np.zeros(4, np.int64), np.zeros(2, np.int64)
    for layer in range(windows[0].shape[1]):
        rows = [one[:, layer].astype(np.int64).ravel() for one in windows]
        sets = [np.unique(one) for one in rows]
        accesses, distinct = np.concatenate(rows), np.concatenate(sets)
        single = accesses[:, None]
        begin = np.concatenate([[0], np.cumsum([len(one) for one in sets])])
        hits += [
            lru_hits(single, number, capacity),
            belady_hits(single, number, capacity),
            lru_set_hits(begin, distinct, number, capacity),
            belady_set_hits(begin, distinct, number, capacity),
        ]
        lookups += [len(accesses), len(distinct)]
    return WindowHits(*(hits / np.repeat(lookups, 2)).tolist())


def belady_of_run(runlog: RunLog) -> float:
    """The share of active experts of the measured passes that one pool of the run's slots could
    hold at best when they are needed, were copies made on demand alone, whatever the warm-up left
    in it; a policy that prefetches can find more. NaN without measured passes."""
    passes = runlog.passes[~runlog.passes["warmup"] & (runlog.passes["phase"] == DECODE_PHASE)]
    layers = runlog.layers[runlog.layers["pass_index"].isin(passes["pass_index"])]
    if layers.empty:
        return float("nan")
    model = runlog.info.model
    total = model.layers * model.experts
    sets = [
        int(layer) * model.experts + np.asarray(active, np.int64)
        for layer, active in zip(layers["layer"], layers["experts"], strict=True)
    ]
    lookups = sum(len(one) for one in sets)
    # An event that needs everything lets the pool begin with whatever is best.
    sets = [np.arange(total), *sets]
    begin = np.concatenate([[0], np.cumsum([len(one) for one in sets])])
    hits = belady_set_hits(begin, np.concatenate(sets), total, runlog.info.slots)
    return float(hits) / lookups
