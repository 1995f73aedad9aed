"""Where in the model a cache hits: the hit rate of every layer of a run."""

import numpy as np
from numpy.typing import NDArray

from traces.run_info import RunLog
from traces.runlog_schema import DECODE_PHASE


def hit_rate_by_layer(runlog: RunLog) -> NDArray[np.float64]:
    """float64 [layers]: share of active experts READY when the routing became known, counted by
    tokens, over the decode passes outside warm-up; NaN for a layer without any.

    Weighted by each layer's tokens its mean is `metrics(runlog).hit_rate_per_token`.
    """
    passes = runlog.passes
    counted = passes["pass_index"][(passes["phase"] == DECODE_PHASE) & ~passes["warmup"]]
    layers = runlog.layers[runlog.layers["pass_index"].isin(counted)]
    number = runlog.info.model.layers
    if layers.empty:
        return np.full(number, np.nan)
    lengths = [len(listed) for listed in layers["counts"]]
    layer = np.repeat(layers["layer"].to_numpy(), lengths)
    counts = np.concatenate(list(layers["counts"])).astype(np.float64)
    hit = np.concatenate(list(layers["hit"]))
    tokens = np.bincount(layer, counts, minlength=number)
    hits = np.bincount(layer, counts * hit, minlength=number)
    return np.divide(hits, tokens, out=np.full(number, np.nan), where=tokens > 0)
