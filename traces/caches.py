"""Hits of one layer's expert cache: LRU, LFU and Belady, as fast functions over plain arrays.

Semantics. The cache of a layer holds C = floor(ratio * E) experts and starts empty; requests follow
one another without clearing it. One token at a time: all k experts of the token are looked up first
and the hits counted; then its residents are touched, then those without a place are loaded in the
order listed (with fewer than k places also one that an earlier one of the same token displaced).
LRU loads every miss and evicts the expert touched longest ago.
LFU loads every miss and evicts the expert with fewest touches since it was loaded; among equals the
one that has had this number of touches for longest.
Belady keeps, of the residents and the token's own experts, the C whose next use is nearest, so a
miss that will not be needed soon is computed without being kept. Nothing can hit more often.
With `load_all` it loads every miss, as a cache must that serves from itself; then k is 1.

LRU and LFU take a fixed number of steps for each request (doubly linked lists), Belady up to C.
With k = 1 they are the caches of libCacheSim (its Belady: `load_all`).
"""

import numpy as np
from numpy.typing import NDArray

from policies.compile import inner, kernel

NONE = -1


@kernel
def lru_hits(tokens: NDArray[np.int64], experts: int, capacity: int) -> int:  # pragma: no cover
    """Hits of an LRU cache; tokens int64 [n, k]."""
    count, k = tokens.shape
    # A ring of residents from the one touched longest ago; `experts` is its seam.
    after = np.full(experts + 1, NONE, np.int32)
    before = np.full(experts + 1, NONE, np.int32)
    after[experts] = experts
    before[experts] = experts
    size, hits = 0, 0
    for t in range(count):
        missed = 0
        for i in range(k):
            expert = tokens[t, i]
            if after[expert] == NONE:
                missed += 1
                continue
            after[before[expert]] = after[expert]
            before[after[expert]] = before[expert]
            last = before[experts]
            after[last], before[expert] = expert, last
            after[expert], before[experts] = experts, expert
        hits += k - missed
        if missed == 0 or capacity == 0:
            continue
        for i in range(k):
            expert = tokens[t, i]
            if after[expert] != NONE:
                continue
            if size == capacity:
                victim = after[experts]
                after[experts] = after[victim]
                before[after[victim]] = experts
                after[victim] = NONE
            else:
                size += 1
            last = before[experts]
            after[last], before[expert] = expert, last
            after[expert], before[experts] = experts, expert
    return hits


@kernel
def lfu_hits(tokens: NDArray[np.int64], experts: int, capacity: int) -> int:  # pragma: no cover
    """Hits of an LFU cache; tokens int64 [n, k]."""
    count, k = tokens.shape
    # For each number of touches a list of residents, the one to evict first at its head.
    touches = np.zeros(experts, np.int64)
    after = np.full(experts, NONE, np.int32)
    before = np.full(experts, NONE, np.int32)
    head = np.full(count + 2, NONE, np.int32)
    tail = np.full(count + 2, NONE, np.int32)
    size, hits, least = 0, 0, 1
    for t in range(count):
        missed = 0
        for i in range(k):
            expert = tokens[t, i]
            number = touches[expert]
            if number == 0:
                missed += 1
                continue
            if before[expert] == NONE:
                head[number] = after[expert]
            else:
                after[before[expert]] = after[expert]
            if after[expert] == NONE:
                tail[number] = before[expert]
            else:
                before[after[expert]] = before[expert]
            if least == number and head[number] == NONE:
                least = number + 1
            _append(expert, number + 1, touches, after, before, head, tail)
        hits += k - missed
        if missed == 0 or capacity == 0:
            continue
        for i in range(k):
            expert = tokens[t, i]
            if touches[expert] != 0:
                continue
            if size == capacity:
                victim = head[least]
                head[least] = after[victim]
                if after[victim] == NONE:
                    tail[least] = NONE
                else:
                    before[after[victim]] = NONE
                touches[victim] = 0
            else:
                size += 1
            _append(expert, 1, touches, after, before, head, tail)
            least = 1
    return hits


@inner
def _append(expert, number, touches, after, before, head, tail):  # type: ignore[no-untyped-def]
    """Put `expert` at the end of the residents that have been touched `number` times."""
    touches[expert] = number
    last = tail[number]
    before[expert] = last
    after[expert] = NONE
    tail[number] = expert
    if last == NONE:
        head[number] = expert
    else:
        after[last] = expert


@kernel
def belady_hits(
    tokens: NDArray[np.int64], experts: int, capacity: int, load_all: bool = False
) -> int:  # pragma: no cover
    """Hits of the best possible cache; tokens int64 [n, k], k = 1 with `load_all`."""
    count, k = tokens.shape
    never = count + 1
    following = next_uses(tokens, experts, never)
    place = np.full(experts, NONE, np.int64)  # of a resident in the two arrays below
    held = np.empty(capacity, np.int64)
    due = np.empty(capacity, np.int64)
    size, hits = 0, 0
    for t in range(count):
        missed = 0
        for i in range(k):
            at = place[tokens[t, i]]
            if at == NONE:
                missed += 1
            else:
                due[at] = following[t, i]
        hits += k - missed
        if missed == 0 or capacity == 0:
            continue
        for i in range(k):
            expert = tokens[t, i]
            if place[expert] != NONE:
                continue
            if size < capacity:
                at = size
                size += 1
            else:
                at = 0
                latest = due[0]
                for other in range(1, capacity):
                    if due[other] > latest:
                        latest = due[other]
                        at = other
                if latest <= following[t, i] and not load_all:
                    continue
                place[held[at]] = NONE
            place[expert] = at
            held[at] = expert
            due[at] = following[t, i]
    return hits


@kernel
def next_uses(tokens: NDArray[np.int64], experts: int, never: int):  # type: ignore[no-untyped-def]
    """int64 [n, k]: the token that uses the same expert next, or `never`."""
    count, k = tokens.shape
    following = np.empty((count, k), np.int64)
    upcoming = np.full(experts, never, np.int64)
    for t in range(count - 1, -1, -1):
        for i in range(k):
            following[t, i] = upcoming[tokens[t, i]]
        for i in range(k):
            upcoming[tokens[t, i]] = t
    return following


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
