"""Training batches as a pure function of seed, step and rank, so a resumed run sees the same."""

from __future__ import annotations

import numpy as np
import torch


def batch_generator(seed: int, step: int, rank: int) -> np.random.Generator:
    """Independent random stream of one step on one rank."""
    return np.random.default_rng((seed, step, rank))


def text_batch(
    texts: list[np.ndarray], sequences: int, tokens: int, source: np.random.Generator
) -> torch.Tensor:
    """int64[sequences, tokens + 1] windows, every workload equally likely."""
    rows = np.empty((sequences, tokens + 1), dtype=np.int64)
    for row, workload in zip(rows, source.integers(len(texts), size=sequences), strict=True):
        text = texts[workload]
        start = source.integers(len(text) - tokens - 1)
        row[:] = text[start : start + tokens + 1]
    return torch.from_numpy(rows)
