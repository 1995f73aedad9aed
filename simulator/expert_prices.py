"""Compiled: the value of simulator.relaxed_bound at given prices, and the search for good prices.

`request` is a RelaxedRequest. Prices float64 [2 P + P L]: of a slot during each pass in units of
copy_ns, of the link in each pass, of the GPU lane in each layer.
"""

from __future__ import annotations

import math

import numpy as np

from policies.compile import kernel

RATE = 0.05
SMOOTHING, SCALING = 0.9, 0.99  # Adam's decays of gradient and of its square
ROUNDING = 1e-10  # of the sum of magnitudes: far above the error of float64 sums


@kernel
def best_value(request, capacity, copy_ns, serial, prices, steps):  # pragma: no cover
    """The highest value found from `prices` on, which end up anywhere."""
    size = len(prices)
    passes = len(request.idle_ns)
    slope = np.zeros(size)
    mean, square = np.zeros(size), np.zeros(size)
    best = 0.0
    for step in range(steps):
        best = max(best, priced_value(request, capacity, copy_ns, serial, prices, slope))
        rate = RATE * (1.0 - step / steps)
        mean_scale = 1.0 - SMOOTHING ** (step + 1)
        square_scale = 1.0 - SCALING ** (step + 1)
        for i in range(size):
            mean[i] = SMOOTHING * mean[i] + (1.0 - SMOOTHING) * slope[i]
            square[i] = SCALING * square[i] + (1.0 - SCALING) * slope[i] * slope[i]
            move = rate * (mean[i] / mean_scale) / (math.sqrt(square[i] / square_scale) + 1e-9)
            highest = np.inf if i < passes else 1.0
            prices[i] = min(highest, max(0.0, prices[i] + move))
    return best


@kernel
def priced_value(request, capacity, copy_ns, serial, prices, slope):  # pragma: no cover
    """Lower bound at `prices`, rounding taken off; writes its supergradient into `slope`."""
    passes, layers = len(request.idle_ns), len(request.fixed_ns)
    per_pass = layers // passes
    link, lanes = prices[passes : 2 * passes], prices[2 * passes :]
    kept = np.zeros(passes + 1)  # price of a slot during the passes before p
    for p in range(passes):
        kept[p + 1] = kept[p] + prices[p] * copy_ns
    cheapest = cheapest_copies(link, kept, copy_ns)
    slope[:] = 0.0
    slope[:passes] = -capacity * copy_ns
    total = -capacity * kept[passes]
    magnitude = capacity * kept[passes]
    for p in range(passes):
        time_ns = request.idle_ns[p]
        for k in range(p * per_pass, (p + 1) * per_pass):
            time_ns += request.fixed_ns[k]
        total += (1.0 - link[p]) * time_ns
        magnitude += time_ns
        slope[passes + p] = -time_ns
    longest = 0
    for e in range(len(request.begin) - 1):
        longest = max(longest, request.begin[e + 1] - request.begin[e])
    came_from = np.zeros((longest, 2), np.int64)
    for e in range(len(request.begin) - 1):
        cost = expert_path(
            request, request.begin[e], request.begin[e + 1], copy_ns, serial, link, lanes, kept,
            cheapest, came_from, slope,
        )  # fmt: skip
        total += cost
        magnitude += cost
    # Slots kept were noted where the keeping begins and ends.
    running = 0.0
    for p in range(passes):
        noted = slope[p] + capacity * copy_ns
        running += noted
        slope[p] = running - capacity * copy_ns
    return total - ROUNDING * magnitude


@kernel
def cheapest_copies(link, kept, copy_ns):  # pragma: no cover
    """Sparse table int64 [log2 P + 1, P]: in row i the pass of p..p + 2^i - 1 in which a copy that
    is kept until later costs least."""
    passes = len(link)
    rows = 1
    while (1 << rows) <= passes:
        rows += 1
    table = np.zeros((rows, passes), np.int64)
    for p in range(passes):
        table[0, p] = p
    for row in range(1, rows):
        half = 1 << (row - 1)
        for p in range(passes - 2 * half + 1):
            one, other = table[row - 1, p], table[row - 1, p + half]
            later = link[other] * copy_ns - kept[other + 1] <= link[one] * copy_ns - kept[one + 1]
            table[row, p] = other if later else one
    return table


@kernel
def copy_pass(table, link, kept, copy_ns, first, last):  # pragma: no cover
    """The pass of first..last in which a copy that is kept until `last` costs least."""
    row = 0
    while (2 << row) <= last - first + 1:
        row += 1
    one, other = table[row, first], table[row, last - (1 << row) + 1]
    later = link[other] * copy_ns - kept[other + 1] <= link[one] * copy_ns - kept[one + 1]
    return other if later else one


@kernel
def lane_weights(serial, link, lane):  # pragma: no cover
    """(weight of GPU time, of CPU time) in the objective."""
    rest = 1.0 - link
    if serial:
        return rest, rest
    return rest * lane, rest * (1.0 - lane)


@kernel
def expert_path(
    request, begin, end, copy_ns, serial, link, lanes, kept, cheapest, came_from, slope
):  # pragma: no cover
    """Cost of one expert's cheapest path through its activations begin..end; adds to `slope`.

    came_from[i, x]: 0 not held before and not copied, 1 copied since, 2 kept since.
    """
    passes = len(link)
    absent, held = 0.0, 0.0
    before = -1
    for i in range(begin, end):
        p, k = request.pass_of[i], request.layer_of[i]
        gpu, cpu = lane_weights(serial, link[p], lanes[k])
        off = cpu * request.cpu_ns[i]
        on = min(gpu * request.gpu_ns[i], off)
        source = copy_pass(cheapest, link, kept, copy_ns, before + 1, p)
        copied = min(absent, held) + link[source] * copy_ns + kept[p + 1] - kept[source + 1]
        stayed = held + kept[p + 1] - kept[before + 1]
        came_from[i - begin, 1] = 2 if stayed <= copied else 1
        # Which state a copy or an absence follows is read from the costs before this activation.
        came_from[i - begin, 0] = 1 if held < absent else 0
        absent, held = min(absent, held) + off, min(stayed, copied) + on
        before = p
    state = 1 if held < absent else 0
    cost = min(held, absent)
    for i in range(end - 1, begin - 1, -1):
        p, k = request.pass_of[i], request.layer_of[i]
        before = request.pass_of[i - 1] if i > begin else -1
        gpu, cpu = lane_weights(serial, link[p], lanes[k])
        on_gpu = state == 1 and gpu * request.gpu_ns[i] < cpu * request.cpu_ns[i]
        rest = 1.0 - link[p]
        time_ns = request.gpu_ns[i] if on_gpu else request.cpu_ns[i]
        if serial:
            slope[passes + p] -= time_ns
        elif on_gpu:
            slope[passes + p] -= lanes[k] * time_ns
            slope[2 * passes + k] += rest * time_ns
        else:
            slope[passes + p] -= (1.0 - lanes[k]) * time_ns
            slope[2 * passes + k] -= rest * time_ns
        if state == 1:
            since = before
            if came_from[i - begin, 1] == 1:
                since = copy_pass(cheapest, link, kept, copy_ns, before + 1, p)
                slope[passes + since] += copy_ns
                state = came_from[i - begin, 0]
            if since < p:
                slope[since + 1] += copy_ns
                if p + 1 < passes:
                    slope[p + 1] -= copy_ns
        else:
            state = came_from[i - begin, 0]
    return cost
