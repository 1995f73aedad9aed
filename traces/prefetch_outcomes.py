"""What became of each prefetch: useful, late or wasted, from the order of copies and uses in a run
log.

Order is by place in the run, not by time: the draft phase of a pass, then its layers. A copy holds
its slot until the next generation of the same slot is issued. The first time its expert is active
in that span decides: a hit makes it useful, a miss means that it was still on its way (late), no
use is a waste.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from traces.run_info import RunLog
from traces.runlog_schema import COPY_PREFETCH, COPY_STREAM, DECODE_PHASE


def count_outcomes(runlog: RunLog, copies: pd.DataFrame) -> tuple[int, int, int]:
    """(useful, late, wasted) of the prefetches among `copies`; the whole log tells their uses."""
    uses = first_uses(runlog, copies[copies["kind"] == COPY_PREFETCH])
    used, useful = int(uses["used"].sum()), int((uses["used"] & uses["hit"]).sum())
    return useful, used - useful, len(uses) - used


def first_uses(runlog: RunLog, prefetches: pd.DataFrame) -> pd.DataFrame:
    """The use that decides about each of `prefetches`, with their index.

    Columns: `used`; `hit`; `pass_index` and `layer` of the use, -1 where there is none.
    """
    layers = runlog.info.model.layers
    nothing = np.zeros(len(prefetches), bool), np.zeros(len(prefetches), bool)
    experts, places, hits = _uses(runlog, runlog.info.model.experts)
    if prefetches.empty or not len(experts):
        return _table(prefetches, *nothing, np.full(len(prefetches), -1), layers)
    held = runlog.copies[runlog.copies["kind"] != COPY_STREAM]
    held = held.assign(place=_place(held, layers)).sort_values(["slot", "generation"])
    slot, place = held["slot"].to_numpy(), held["place"].to_numpy()
    until = np.full(len(held), np.iinfo(np.int64).max)
    until[:-1] = np.where(slot[1:] == slot[:-1], place[1:], until[:-1])
    span_end = pd.Series(until, index=held.index).loc[prefetches.index].to_numpy()
    span_begin = _place(prefetches, layers).to_numpy()

    order = np.lexsort((places, experts))
    experts, places, hits = experts[order], places[order], hits[order]
    # One sortable number per use, so that the first use after a copy is one binary search.
    stride = int(max(places.max(), span_begin.max()) + 2)
    wanted = prefetches["expert"].to_numpy().astype(np.int64)
    found = np.searchsorted(experts * stride + places, wanted * stride + span_begin, side="right")
    at = np.minimum(found, len(experts) - 1)
    used = (found < len(experts)) & (experts[at] == wanted) & (places[at] <= span_end)
    return _table(prefetches, used, hits[at] == 1, np.where(used, places[at], -1), layers)


def _table(
    prefetches: pd.DataFrame,
    used: NDArray[np.bool_],
    hit: NDArray[np.bool_],
    place: NDArray[np.int64],
    layers: int,
) -> pd.DataFrame:
    pass_index = np.where(place < 0, -1, place // (layers + 1))
    layer = np.where(place < 0, -1, place % (layers + 1) - 1)
    columns = {"used": used, "hit": hit & used, "pass_index": pass_index, "layer": layer}
    return pd.DataFrame(columns, index=prefetches.index)


def _place(table: pd.DataFrame, layers: int) -> pd.Series:
    """Place in the run: draft phase of pass p is p * (L + 1), its layer l is l + 1 later."""
    return table["pass_index"].astype(np.int64) * (layers + 1) + table["layer"] + 1


def _uses(
    runlog: RunLog, experts: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(flat expert, place, hit) of every active expert of the run."""
    passes, empty = runlog.passes, np.empty(0, np.int64)
    # Prefill computes beside the slots: it neither uses a resident expert nor waits for a copy.
    decode = passes["pass_index"][passes["phase"] == DECODE_PHASE]
    layers = runlog.layers[runlog.layers["pass_index"].isin(decode)]
    if layers.empty:
        return empty, empty, empty
    lengths = np.array([len(listed) for listed in layers["experts"]])
    number = np.concatenate(list(layers["experts"])).astype(np.int64)
    layer = np.repeat(layers["layer"].to_numpy().astype(np.int64), lengths)
    place = np.repeat(_place(layers, runlog.info.model.layers).to_numpy(), lengths)
    hit = np.concatenate(list(layers["hit"])).astype(np.int64)
    return layer * experts + number, place, hit
