"""How local the router's choices are, token by token, against a shuffled null.

Routing is uint8[B, T, L, k]: B texts of T tokens, the k experts of every layer L.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import torch

from runtime.training.network import Network


@torch.inference_mode()
def record_routing(target: Network, tokens: torch.Tensor, written: int) -> np.ndarray:
    """Experts of the last ``written`` tokens of int64[B, T]: uint8[B, written, L, k]."""
    texts = []
    for row in tokens:
        target(row[None])
        layers = [block.chosen[-written:].numpy() for block in target.expert_blocks()]
        texts.append(np.stack(layers, axis=1).astype(np.uint8))
    return np.stack(texts)


def shuffled_tokens(routing: np.ndarray, seed: int) -> np.ndarray:
    """The same tokens of each text in random order: keeps popularity, removes locality."""
    source = np.random.default_rng(seed)
    return np.stack([text[source.permutation(len(text))] for text in routing])


def reuse(routing: np.ndarray) -> float:
    """Mean share of the previous token's experts that the same layer chooses again."""
    before, after = routing[:, :-1, :, :, None], routing[:, 1:, :, None, :]
    return float((before == after).any(-1).mean())


def lru_hit_rate(routing: np.ndarray, capacity: int) -> float:
    """Hits per expert access of one LRU of ``capacity`` experts per layer, empty at each text.

    Experts of the current token are never the victim, so ``capacity`` must be at least k.
    """
    if capacity < routing.shape[-1]:
        raise ValueError(f"capacity {capacity} is below the {routing.shape[-1]} experts per token")
    hits = 0
    for text in routing:
        for layer in range(text.shape[1]):
            hits += lru_hits(text[:, layer].tolist(), capacity)
    return hits / routing.size


def lru_hits(tokens: list[list[int]], capacity: int) -> int:
    """Number of accesses found resident; residents of a token are refreshed before any fetch."""
    resident: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for experts in tokens:
        missing = []
        for expert in experts:
            if expert in resident:
                resident.move_to_end(expert)
                hits += 1
            else:
                missing.append(expert)
        for expert in missing:
            if len(resident) >= capacity:
                resident.popitem(last=False)
            resident[expert] = None
    return hits


def entropy(routing: np.ndarray, experts: int) -> list[float]:
    """Entropy of expert use per layer over all tokens, as a share of the uniform one."""
    shares = []
    for layer in range(routing.shape[2]):
        counts = np.bincount(routing[:, :, layer].ravel(), minlength=experts)
        chance = counts[counts > 0] / counts.sum()
        shares.append(float(-(chance * np.log(chance)).sum() / np.log(experts)))
    return shares


def distinct_per_window(routing: np.ndarray, window: int) -> float:
    """Mean number of distinct experts per layer over ``window`` consecutive tokens."""
    counts = []
    for start in range(0, routing.shape[1] - window + 1, window):
        part = routing[:, start : start + window].transpose(0, 2, 1, 3)
        part = np.sort(part.reshape(part.shape[0], part.shape[1], -1), axis=-1)
        counts.append(1 + (np.diff(part, axis=-1) != 0).sum(-1).mean())
    return float(np.mean(counts))
