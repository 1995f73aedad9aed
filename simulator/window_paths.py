"""Compiled: arcs, their costs at given prices, and the shortest path of simulator.window_bound.

`arcs` is an Arcs; T starts, windows 0..G, keys = layers x experts.
"""

from __future__ import annotations

import math

import numpy as np

from policies.compile import kernel
from simulator.expert_prices import RATE, ROUNDING, SCALING, SMOOTHING, lane_weights


@kernel
def first_rows(begin, experts, layers, per_layer, gamma):  # pragma: no cover
    """int16 [T, keys]: the first row at t that activates the expert; gamma + 1 if none does. The
    expert is active in the pass of a window if that row is in it."""
    starts = len(begin)
    table = np.full((starts, layers * per_layer), gamma + 1, np.int16)
    for t in range(starts):
        if begin[t] < 0:
            continue
        last = min(gamma, len(experts) - 1 - begin[t])
        for row in range(last, -1, -1):
            for layer in range(layers):
                for one in experts[begin[t] + row, layer]:
                    table[t, layer * per_layer + one] = row
    return table


@kernel
def fewest_passes(committed, first_row):  # pragma: no cover
    """int32 [T, keys]: fewest passes, the one at t counted, since the expert's last activation or
    the begin of the request, over all runs that reach t."""
    starts, windows = committed.shape
    keys = first_row.shape[1]
    fewest = np.full((starts, keys), np.iinfo(np.int32).max, np.int32)
    fewest[0] = 1
    for t in range(starts):
        for gamma in range(windows):
            after = t + committed[t, gamma]
            if committed[t, gamma] == 0 or after >= starts:
                continue
            for key in range(keys):
                passes = 1
                if first_row[t, key] > gamma:
                    if fewest[t, key] == np.iinfo(np.int32).max:
                        continue
                    passes = fewest[t, key] + 1
                fewest[after, key] = min(fewest[after, key], passes)
    return fewest


@kernel
def active_entries(
    begin, experts, committed, gamma, first_row, fewest, per_layer, gpu_ns, cpu_ns, extra_ns
):  # pragma: no cover
    """(begin int64 [T, G + 2], entries float64 [3, A]) of Arcs: fewest, gpu_ns, cpu_ns."""
    starts, windows = committed.shape
    layers, keys = experts.shape[1], first_row.shape[1]
    places = np.zeros((starts, windows + 1), np.int64)
    total = 0
    for t in range(starts):
        for window in range(windows):
            places[t, window] = total
            if committed[t, window] > 0:
                for key in range(keys):
                    total += first_row[t, key] <= gamma[t, window]
        places[t, windows] = total
    entries = np.zeros((3, total))
    counts = np.zeros(per_layer, np.int64)
    at = 0
    for t in range(starts):
        for window in range(windows):
            if committed[t, window] == 0:
                continue
            for layer in range(layers):
                counts[:] = 0
                for row in range(begin[t], begin[t] + gamma[t, window] + 1):
                    for one in experts[row, layer]:
                        counts[one] += 1
                active = 0
                for one in range(per_layer):
                    active += counts[one] > 0
                for one in range(per_layer):
                    if counts[one] > 0:
                        entries[0, at] = fewest[t, layer * per_layer + one]
                        entries[1, at] = gpu_ns[counts[one]]
                        entries[2, at] = cpu_ns[counts[one]] + extra_ns / active
                        at += 1
    return places, entries


@kernel
def best_path(arcs, capacity, copy_ns, serial, prices, steps):  # pragma: no cover
    """The highest value found from `prices` on, float64 [3]: slot per pass in units of copy_ns,
    link, GPU lane."""
    mean, square, slope = np.zeros(3), np.zeros(3), np.zeros(3)
    best = 0.0
    for step in range(steps):
        best = max(best, shortest_path(arcs, capacity, copy_ns, serial, prices, slope))
        mean_scale, square_scale = 1.0 - SMOOTHING ** (step + 1), 1.0 - SCALING ** (step + 1)
        for i in range(3):
            mean[i] = SMOOTHING * mean[i] + (1.0 - SMOOTHING) * slope[i]
            square[i] = SCALING * square[i] + (1.0 - SCALING) * slope[i] * slope[i]
            move = mean[i] / mean_scale / (math.sqrt(square[i] / square_scale) + 1e-9)
            moved = prices[i] + RATE * (1.0 - step / steps) * move
            prices[i] = min(np.inf if i == 0 else 1.0, max(0.0, moved))
    return best


@kernel
def shortest_path(arcs, capacity, copy_ns, serial, prices, slope):  # pragma: no cover
    """Length of the shortest path at `prices`, rounding taken off; writes its slope."""
    starts, windows = arcs.committed.shape
    length = np.full(starts + 1, np.inf)
    length[0] = 0.0
    magnitude = np.zeros(starts + 1)
    slopes = np.zeros((starts + 1, 3))
    arc = np.zeros(3)
    for t in range(starts):
        if length[t] == np.inf:
            continue
        for gamma in range(windows):
            if arcs.committed[t, gamma] == 0:
                continue
            first, last = arcs.begin[t, gamma], arcs.begin[t, gamma + 1]
            cost, size = arc_cost(
                arcs, arcs.time_ns[t, gamma], first, last, capacity, copy_ns, serial, prices, arc
            )
            after = min(starts, t + arcs.committed[t, gamma])
            if length[t] + cost < length[after]:
                length[after] = length[t] + cost
                magnitude[after] = magnitude[t] + size
                slopes[after] = slopes[t] + arc
    slope[:] = slopes[starts]
    return length[starts] - ROUNDING * magnitude[starts]


@kernel
def arc_cost(
    arcs, time_ns, first, last, capacity, copy_ns, serial, prices, slope
):  # pragma: no cover
    """(cost of an arc, magnitude of its terms); writes its slope."""
    slot, link, lane = prices[0] * copy_ns, prices[1], prices[2]
    gpu, cpu = lane_weights(serial, link, lane)
    rest = 1.0 - link
    cost = rest * time_ns - slot * capacity
    slope[0], slope[1], slope[2] = -capacity * copy_ns, -time_ns, 0.0
    for i in range(first, last):
        off = cpu * arcs.cpu_ns[i]
        kept = slot * arcs.fewest[i]
        copied = link * copy_ns
        on = gpu * arcs.gpu_ns[i] + min(kept, copied)
        if off <= on:
            cost += off
            slope[1] -= arcs.cpu_ns[i] * (1.0 if serial else 1.0 - lane)
            slope[2] -= 0.0 if serial else rest * arcs.cpu_ns[i]
            continue
        cost += on
        slope[1] -= arcs.gpu_ns[i] * (1.0 if serial else lane)
        slope[2] += 0.0 if serial else rest * arcs.gpu_ns[i]
        if copied < kept:
            slope[1] += copy_ns
        else:
            slope[0] += arcs.fewest[i] * copy_ns
    return cost, abs(cost) + 2.0 * slot * capacity
