"""Hit rates of one layer's expert cache: LRU and Belady, as fast functions over plain arrays.

Semantics. The cache of a layer holds C = floor(ratio * E) experts and starts empty; requests follow
one another without clearing it. One token at a time: all k experts of the token are looked up first
and the hits counted; then its residents are touched, then its misses are loaded in the order
listed.
LRU loads every miss and evicts the expert touched longest ago.
Belady keeps, of the residents and the token's own experts, the C whose next use is nearest, so a
miss that will not be needed soon is computed without being kept. Nothing can hit more often.
"""

import numpy as np
from numpy.typing import NDArray

from policies.compile import kernel


@kernel
def lru_hits(tokens: NDArray[np.int64], experts: int, capacity: int) -> int:  # pragma: no cover
    """Hits of an LRU cache; tokens int64 [n, k]."""
    count, k = tokens.shape
    touched = np.full(experts, -1, np.int64)
    resident = np.zeros(experts, np.bool_)
    size, hits, clock = 0, 0, 0
    for t in range(count):
        for i in range(k):
            if resident[tokens[t, i]]:
                hits += 1
                touched[tokens[t, i]] = clock
                clock += 1
        for i in range(k):
            expert = tokens[t, i]
            if resident[expert] or capacity == 0:
                continue
            if size == capacity:
                victim = -1
                for other in range(experts):
                    if resident[other] and (victim < 0 or touched[other] < touched[victim]):
                        victim = other
                resident[victim] = False
            else:
                size += 1
            resident[expert] = True
            touched[expert] = clock
            clock += 1
    return hits


@kernel
def belady_hits(tokens: NDArray[np.int64], experts: int, capacity: int) -> int:  # pragma: no cover
    """Hits of the best possible cache; tokens int64 [n, k]."""
    count, k = tokens.shape
    never = count + 1
    following = np.empty((count, k), np.int64)
    upcoming = np.full(experts, never, np.int64)
    for t in range(count - 1, -1, -1):
        for i in range(k):
            following[t, i] = upcoming[tokens[t, i]]
        for i in range(k):
            upcoming[tokens[t, i]] = t
    resident = np.zeros(experts, np.bool_)
    next_use = np.full(experts, never, np.int64)
    size, hits = 0, 0
    for t in range(count):
        for i in range(k):
            if resident[tokens[t, i]]:
                hits += 1
            next_use[tokens[t, i]] = following[t, i]
        for i in range(k):
            expert = tokens[t, i]
            if resident[expert] or capacity == 0:
                continue
            if size < capacity:
                resident[expert] = True
                size += 1
                continue
            victim = -1
            for other in range(experts):
                if resident[other] and (victim < 0 or next_use[other] > next_use[victim]):
                    victim = other
            if next_use[victim] > next_use[expert]:
                resident[victim] = False
                resident[expert] = True
    return hits


def capacity_of(ratio: float, experts: int) -> int:
    """Experts of one layer that fit at a cache ratio: floor(ratio * experts)."""
    # 0.29 * 100 is 28.999..; the nudge makes the floor that of the decimal number.
    return int(ratio * experts + 1e-9)


def hit_rates(experts: NDArray[np.uint16], number: int, ratio: float) -> tuple[float, float]:
    """(LRU, Belady) hit rates, mean over layers; experts uint16 [n, L, K], `number` per layer."""
    tokens = np.ascontiguousarray(experts.transpose(1, 0, 2), dtype=np.int64)
    capacity, lookups = capacity_of(ratio, number), max(tokens.size, 1)
    lru = sum(lru_hits(layer, number, capacity) for layer in tokens)
    belady = sum(belady_hits(layer, number, capacity) for layer in tokens)
    return float(lru) / lookups, float(belady) / lookups
