"""Gumbel noise fixed by seed, request and position, so target and draft can share it.

Adding it to log-probabilities and taking the largest entry draws from the softmax.
"""

from __future__ import annotations

import numpy as np
import torch


def gumbel_noise(seed: int, request: int, position: int, vocabulary: int) -> np.ndarray:
    """float32[vocabulary] noise of one position of one request."""
    source = np.random.default_rng((seed, request, position))
    return source.gumbel(size=vocabulary).astype(np.float32)


def gumbel_block(seed: int, requests: range, positions: range, vocabulary: int) -> torch.Tensor:
    """float32[requests, positions, vocabulary] noise."""
    rows = [
        [gumbel_noise(seed, request, position, vocabulary) for position in positions]
        for request in requests
    ]
    return torch.from_numpy(np.array(rows, dtype=np.float32))


def keyed_choice(logits: torch.Tensor, noise: torch.Tensor, temperature: float) -> torch.Tensor:
    """int64[...] token per row of float[..., V] logits; temperature 0 is greedy."""
    if temperature == 0:
        return logits.argmax(-1)
    return (logits / temperature + noise).argmax(-1)
