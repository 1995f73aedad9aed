"""How much a window's counts, its bits and one row's bits tell, as a table per workload and layer.

Columns, all in bits and means over the experts of a layer: entropy_<signal>, its share of the
largest possible (`_share`), the same for rows in random order (`_null`); next_bit_<signal> and
next_count_<signal>: mutual information with the next pass of the request, less its mean over random
pairings of passes.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.trace_choice import Workload
from policies.errors import UserError
from traces.information import entropy_bits, histograms, mutual_information, null_information
from traces.replay import open_replay
from traces.window_signals import WindowSignals, counts_of, shuffled_rows, window_signals

SIGNALS = ("row", "bit", "count")
MEANINGS = {
    "row": "one row's bit (plain decoding)",
    "bit": "the window's bit",
    "count": "the window's count",
}


def information_rows(
    workload: Workload, gamma: int, requests: int | None, shuffles: int, seed: int
) -> pd.DataFrame:
    """One row per layer of the workload."""
    replay = workload.replay
    if replay.kind == "text":
        # With rejections the rows behind the last accepted one are those of the next window, and
        # would foretell it: windows that follow each other without overlap instead.
        replay = open_replay(workload.trace, 1.0, seed)
    signals = window_signals(replay, gamma, requests)
    if len(signals.request) < 10:
        raise UserError(
            f"{workload.name}: {len(signals.request)} passes are too few; more requests"
        )
    model = workload.replay.model
    columns = entropies(signals, gamma, seed) | shared(signals, gamma, shuffles, seed)
    layers = {
        name: values.reshape(model.layers, model.experts).mean(axis=1)
        for name, values in columns.items()
    }
    head = {
        "workload": workload.name,
        "approximate": workload.replay.approximate,
        "gamma": gamma,
        "passes": len(signals.request),
        "experts": model.experts,
        "layer": np.arange(model.layers),
    }
    return pd.DataFrame({**head, **layers})


def entropies(signals: WindowSignals, gamma: int, seed: int) -> dict[str, NDArray[np.float64]]:
    """Entropy of each signal per cell, as it is and for shuffled rows."""
    mixed = shuffled_rows(signals.experts, seed)
    nulls = WindowSignals(
        counts_of(mixed, signals.number), counts_of(mixed[:, :1], signals.number),
        signals.request, mixed, signals.number,
    )  # fmt: skip
    columns = {}
    for name in SIGNALS:
        states = states_of(name, gamma)
        own = entropy_bits(histograms(getattr(signals, name), states))
        columns[f"entropy_{name}"] = own
        columns[f"entropy_{name}_share"] = own / np.log2(states)
        columns[f"entropy_{name}_null"] = entropy_bits(histograms(getattr(nulls, name), states))
    return columns


def shared(
    signals: WindowSignals, gamma: int, shuffles: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    """Corrected mutual information of each signal with the next pass's bit and count, per cell."""
    pairs = np.flatnonzero(signals.request[1:] == signals.request[:-1])
    columns = {}
    for target in ("bit", "count"):
        later, target_states = getattr(signals, target)[pairs + 1], states_of(target, gamma)
        for name in SIGNALS:
            now, states = getattr(signals, name)[pairs], states_of(name, gamma)
            raw = mutual_information(now, later, states, target_states)
            null = null_information(now, later, states, target_states, shuffles, seed)
            columns[f"next_{target}_{name}"] = raw - null
            columns[f"next_{target}_{name}_null"] = null
    return columns


def states_of(signal: str, gamma: int) -> int:
    """Values that a signal can take: a count is 0..gamma + 1."""
    return gamma + 2 if signal == "count" else 2
