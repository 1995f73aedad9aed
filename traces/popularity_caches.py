"""Hit rates of caches that go by popularity, to stand beside LRU and Belady of `caches.py`."""

import numpy as np
from numpy.typing import NDArray


def static_hit_rate(experts: NDArray[np.uint16], number: int, capacity: int) -> float:
    """Each layer holds the `capacity` experts most frequent in the whole trace; [n, L, K]."""
    rates = []
    for layer in range(experts.shape[1]):
        counts = np.bincount(experts[:, layer].ravel(), minlength=number)
        rates.append(np.sort(counts)[::-1][:capacity].sum() / experts[:, layer].size)
    return float(np.mean(rates))


def frequency_hit_rate(experts: NDArray[np.uint16], number: int, capacity: int) -> float:
    """LFU: each layer holds the `capacity` experts most frequent so far, among equals the lower
    number; an expert never used is not held."""
    hits = 0
    tokens, layers, k = experts.shape
    for layer in range(layers):
        chosen = experts[:, layer].astype(np.int64)
        active = np.zeros((tokens, number), np.int32)
        np.put_along_axis(active, chosen, 1, axis=1)
        before = np.cumsum(active, axis=0) - active
        # Whole numbers less a fraction that grows with the expert's number: no ties are left.
        rank = before - np.arange(number) / (2.0 * number)
        floor = -np.partition(-rank, capacity - 1, axis=1)[:, capacity - 1 : capacity]
        held = (rank >= floor) & (before > 0)
        hits += int((held & (active > 0)).sum())
    return hits / (tokens * layers * k)
