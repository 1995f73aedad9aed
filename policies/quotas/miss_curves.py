"""Slots by measured miss curves: the dynamic program of AdapMoE (arXiv 2408.10284), without its
expert skipping.

The curve of a layer is its histogram of LRU stack depths: an activation at depth d hits if the
layer has more than d slots. Experts of one pass arrive together; ties in age count as ordered by
expert number.
"""

from __future__ import annotations

import numpy as np

from policies.compile import inner
from policies.state import PASS, QUOTA, SLOTS

PROFILE_PASSES = 0


@inner
def observe_depths(state, observation, layer):
    """Add this pass's activations of `layer` to its curve; call before the stamps change."""
    if state.clock[PASS] >= state.parameters[QUOTA, PROFILE_PASSES]:
        return
    stamps, curve, active = state.stamp, state.curve, observation.active
    experts = stamps.shape[1]
    for place in range(observation.size[0]):
        expert = active[place]
        stamp = stamps[layer, expert]
        depth = experts
        if stamp >= 0:
            depth = 0
            for other in range(experts):
                newer = stamps[layer, other] > stamp
                if newer or (stamps[layer, other] == stamp and other < expert):
                    depth += 1
        curve[layer, depth] += 1


@inner(allocates=True)
def best_division(curve, slots):
    """curve int64 [layers, experts + 1] -> int64 [layers]: slots per layer (at most `experts`) with
    the fewest misses in all; unneeded slots go to the first layers with room."""
    layers = curve.shape[0]
    experts = curve.shape[1] - 1
    total = min(slots, layers * experts)
    most = np.zeros(total + 1, np.int64)  # hits with so many slots for the layers so far
    choice = np.zeros((layers, total + 1), np.int64)
    for layer in range(layers):
        hits = np.zeros(experts + 1, np.int64)
        for given in range(experts):
            hits[given + 1] = hits[given] + curve[layer, given]
        better = np.zeros(total + 1, np.int64)
        for held in range(total + 1):
            best = np.int64(-1)
            for given in range(min(experts, held) + 1):
                value = most[held - given] + hits[given]
                if value > best:
                    best = value
                    choice[layer, held] = given
            better[held] = best
        most = better
    share = np.zeros(layers, np.int64)
    held = total
    for layer in range(layers - 1, -1, -1):
        share[layer] = choice[layer, held]
        held -= share[layer]
    for layer in range(layers):
        more = min(held, experts - share[layer])
        share[layer] += more
        held -= more
    return share


@inner(allocates=True)
def divide_by_curves(state):
    """Once, at the start of the pass after the profile: set the quotas."""
    if state.clock[PASS] == int(state.parameters[QUOTA, PROFILE_PASSES]):
        share = best_division(state.curve, state.clock[SLOTS])
        for layer in range(share.shape[0]):
            state.quota[layer] = share[layer]
