"""Past passes that went like this one, and what came after them: text that resembles earlier text
repeats its routing.

The likeness of a past pass is the share of experts that it has in common with this one (Dice), mean
over the layers run so far, plus `CARRY` times what the pass before it was like the one before this.
A layer's uses after the nearest passes, weighted by exp(SHARPNESS * likeness), are what it may
expect: attention over the run's own past (Bahdanau et al. 2015), with routing as query, key and
value.
"""

from __future__ import annotations

import numpy as np

from policies.bits import count_ones
from policies.compile import inner
from policies.state import ESTIMATOR, PASS, TOP_K

DISCOUNT = 4
PASSES = 512  # remembered, with the one under way
NEAREST = 16  # past passes that say something
CARRY = 0.4
SHARPNESS = 10.0
AHEAD = 6  # passes after a near one that count, each `discount` times what the one before does
WORD = 64  # experts in a word of `past_mask`


@inner
def carry_likeness(state):
    """A pass begins: it may be like what came after those that the last one was like."""
    likeness = state.likeness
    last = likeness[likeness.shape[0] - 1]
    for slot in range(likeness.shape[0] - 1, 0, -1):
        likeness[slot] = CARRY * likeness[slot - 1]
    likeness[0] = CARRY * last


@inner
def compare_layer(state, observation, layer):
    """Remember the experts of this layer, and add what each past pass has in common with them."""
    masks, sizes, experts = state.past_mask, state.past_size, state.past_expert
    likeness, active = state.likeness, observation.active
    layers, passes, words = masks.shape
    now = state.clock[PASS] % passes
    total = observation.size[0]
    masks[layer, now] = 0
    for place in range(total):
        expert = active[place]
        experts[layer, now, place] = expert
        masks[layer, now, expert // WORD] |= np.uint64(1) << np.uint64(expert % WORD)
    sizes[layer, now] = total
    for slot in range(passes):
        common = np.uint64(0)
        for word in range(words):
            common += count_ones(masks[layer, slot, word] & masks[layer, now, word])
        if common > 0:
            likeness[slot] += 2.0 * common / ((sizes[layer, slot] + total) * layers)
    likeness[now] = 0.0


@inner
def find_nearest(state):
    """Fill `state.nearest` with the past passes of highest likeness, descending, by their place in
    the ring; returns how many there are."""
    likeness, nearest = state.likeness, state.nearest
    passes, most = likeness.shape[0], nearest.shape[0]
    now = state.clock[PASS] % passes
    length = 0
    least = -1.0
    for slot in range(min(state.clock[PASS] + 1, passes)):
        if likeness[slot] <= least or slot == now:
            continue
        place = min(length, most - 1)
        while place > 0 and likeness[nearest[place - 1]] < likeness[slot]:
            nearest[place] = nearest[place - 1]
            place -= 1
        nearest[place] = slot
        length = min(length + 1, most)
        if length == most:
            least = likeness[nearest[most - 1]]
    return length


@inner
def expect_matches(state, layer, expected):
    """Fill `expected` float64 [experts]: discounted uses, as shares of a pass, in the passes after
    the nearest ones."""
    likeness, nearest = state.likeness, state.nearest
    sizes, experts = state.past_size, state.past_expert
    discount = state.parameters[ESTIMATOR, DISCOUNT]
    passes = likeness.shape[0]
    found = find_nearest(state)
    expected[:] = 0.0
    total = 0.0
    for place in range(found):
        total += np.exp(SHARPNESS * (likeness[nearest[place]] - likeness[nearest[0]]))
    for place in range(found):
        slot = nearest[place]
        weight = np.exp(SHARPNESS * (likeness[slot] - likeness[nearest[0]])) / total
        age = (state.clock[PASS] - slot) % passes
        for _ in range(min(age, AHEAD)):
            slot = (slot + 1) % passes
            share = weight * state.clock[TOP_K] / max(sizes[layer, slot], 1)
            for other in range(sizes[layer, slot]):
                expected[experts[layer, slot, other]] += share
            weight *= discount
