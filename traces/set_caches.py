"""Hits of a cache whose events need sets of experts of any size at once: LRU and Belady.

An event is the set that one verify window activates in a layer. All its experts are looked up
first and the hits counted; then its residents are touched, then the others are loaded in the order
listed, as in `caches`, where every event is a token of k experts.
Belady keeps, of the residents and the event's own experts, those whose next use is nearest. No
cache that loads only what an event needs can hit more often: an expert whose next use is later
never helps more.
"""

import numpy as np

from policies.compile import kernel


@kernel
def lru_set_hits(begin, listed, experts, capacity):  # pragma: no cover
    """Hits of an LRU cache; event t needs listed[begin[t]..begin[t + 1]], distinct, int64."""
    touched = np.full(experts, -1, np.int64)
    resident = np.zeros(experts, np.bool_)
    size, hits, clock = 0, 0, 0
    for t in range(len(begin) - 1):
        for i in range(begin[t], begin[t + 1]):
            if resident[listed[i]]:
                hits += 1
                touched[listed[i]] = clock
                clock += 1
        for i in range(begin[t], begin[t + 1]):
            expert = listed[i]
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
def belady_set_hits(begin, listed, experts, capacity):  # pragma: no cover
    """Hits of the best possible cache; event t needs listed[begin[t]..begin[t + 1]], distinct,
    int64."""
    count = len(begin) - 1
    never = count + 1
    following = np.empty(len(listed), np.int64)
    upcoming = np.full(experts, never, np.int64)
    for t in range(count - 1, -1, -1):
        for i in range(begin[t], begin[t + 1]):
            following[i] = upcoming[listed[i]]
        for i in range(begin[t], begin[t + 1]):
            upcoming[listed[i]] = t
    resident = np.zeros(experts, np.bool_)
    next_use = np.full(experts, never, np.int64)
    size, hits = 0, 0
    for t in range(count):
        for i in range(begin[t], begin[t + 1]):
            if resident[listed[i]]:
                hits += 1
            next_use[listed[i]] = following[i]
        for i in range(begin[t], begin[t + 1]):
            expert = listed[i]
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
