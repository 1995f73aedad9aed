"""The worst text for LRU: experts come round just after a cache of the given size has dropped them.

Experts are walked in a circle of capacity + top_k. When one comes round again, `capacity` others
have been touched since, so LRU has dropped it, and hits nothing, ever; a cache that holds on to any
`capacity` of them hits nearly capacity / (capacity + top_k) of the time.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.caches import belady_hits, lru_hits
from traces.generators.shape import Drawn, Statistic, TextShape


@dataclass(frozen=True)
class Adversary:
    """`capacity`: slots of a layer's cache, at which and below which LRU shall hit nothing."""

    capacity: int = 10

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise UserError(f"capacity={self.capacity}, must be at least 1")


def adversary_experts(law: Adversary, shape: TextShape, seed: int) -> NDArray[np.uint16]:
    """uint16 [rows, L, K]. Each layer has its own circle; requests go on where the last stopped."""
    circle = law.capacity + shape.top_k
    if circle > shape.experts:
        raise UserError(
            f"capacity={law.capacity} and top_k={shape.top_k} need {circle} experts, there are "
            f"{shape.experts}"
        )
    generator = np.random.default_rng(seed)
    step = np.arange(shape.rows * shape.top_k).reshape(shape.rows, shape.top_k) % circle
    layers = [generator.permutation(shape.experts)[:circle][step] for _ in range(shape.layers)]
    return np.stack(layers, axis=1).astype(np.uint16)


def adversary_statistics(law: Adversary, drawn: Drawn) -> list[Statistic]:
    """Hit rates of LRU and of the best possible cache at the capacity."""
    number, total = drawn.shape.experts, drawn.experts.size
    layers = np.ascontiguousarray(drawn.experts.transpose(1, 0, 2), dtype=np.int64)
    lru = sum(lru_hits(layer, number, law.capacity) for layer in layers) / total
    best = sum(belady_hits(layer, number, law.capacity) for layer in layers) / total
    # Whoever keeps the first `capacity` experts of the circle hits them in each later round.
    requests = drawn.shape.rows * drawn.shape.top_k
    rounds = requests // (law.capacity + drawn.shape.top_k)
    bound = max(rounds - 1, 0) * law.capacity / requests
    return [
        Statistic("hit rate of LRU", 0.0, lru),
        Statistic("hit rate of Belady, at least", bound, best),
    ]
