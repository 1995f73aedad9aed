"""Locality of routing: reuse, distinct experts of a window, entropy, repeated text."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from traces.text_rows import TextRows


def reuse_from_previous(text: TextRows) -> float:
    """Share of a row's experts that the row before it in the same request chose as well."""
    same = text.request[1:] == text.request[:-1]
    later, earlier = text.experts[1:][same], text.experts[:-1][same]
    if len(later) == 0:
        return float("nan")
    return float((later[..., :, None] == earlier[..., None, :]).any(axis=-1).mean())


def distinct_experts(windows: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Distinct experts of each window and layer, int64 [n, L]; windows uint16 [n, rows, L, K]."""
    count, rows, layers, k = windows.shape
    together = np.sort(windows.transpose(0, 2, 1, 3).reshape(count, layers, rows * k), axis=2)
    distinct: NDArray[np.int64] = (together[:, :, 1:] != together[:, :, :-1]).sum(axis=2) + 1
    return distinct


def sliding_windows(text: TextRows, gamma: int) -> NDArray[np.uint16]:
    """All runs of gamma + 1 text rows of one request, uint16 [n, gamma + 1, L, K]."""
    count = max(len(text.request) - gamma, 0)
    begin = np.arange(count)
    begin = begin[text.request[begin] == text.request[begin + gamma]]
    return text.experts[begin[:, None] + np.arange(gamma + 1)]


def router_entropy(experts: NDArray[np.uint16], number: int) -> list[float]:
    """Entropy of each layer's expert popularity over log(number), 1 is uniform; [n, L, K]."""
    entropies = []
    for layer in range(experts.shape[1]):
        share = np.bincount(experts[:, layer].ravel(), minlength=number) / experts[:, layer].size
        share = share[share > 0]
        entropies.append(float(-(share * np.log(share)).sum() / np.log(max(number, 2))))
    return entropies


def repeated_ngrams(texts: Sequence[NDArray[np.int32]], length: int = 4) -> float:
    """Share of n-grams that occurred before in the same text; near 1 means that the text loops."""
    total, distinct = 0, 0
    for text in texts:
        if len(text) >= length:
            grams = np.lib.stride_tricks.sliding_window_view(text, length)
            total += len(grams)
            distinct += len(np.unique(grams, axis=0))
    return (total - distinct) / total if total else float("nan")
