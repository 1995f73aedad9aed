"""A lower bound on decode time for policies that choose the window of every pass.

Over the committed text: a pass at token t with window gamma leads to token t + committed, so a run
is a path. Each such arc gets a cost that no run through it can undercut, and the shortest path is
the bound. With the prices of simulator.relaxed_bound (here one number each: of a slot per pass, of
the link, of the GPU lane), an expert activated on the GPU has been kept since its last activation,
or copied since. Kept through how many passes depends on the path; the fewest over all paths that
lead here is a bound that does not, so the cost of an arc is

    idle (1 - lambda) + sum_k fixed (1 - lambda) - mu capacity
    + sum over active e of min(cpu c, gpu g + min(lambda copy, mu fewest_e(t)))

which is the value of that relaxation for the best path at most, hence a lower bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from policies.compile import kernel
from policies.costs import CostTable
from simulator.relaxed_bound import RATE, ROUNDING, SCALING, SMOOTHING, lane_weights
from traces.manifest import ModelInfo
from traces.request_arrays import RequestArrays

STEPS = 150


class Arcs(NamedTuple):
    """Passes that a request can hold, T starts and windows 0..G: committed int64 [T, G + 1] (0
    where no pass can begin), time_ns float64 [T, G + 1] without experts; the active experts of arc
    t, gamma are entries begin[t, gamma]..begin[t, gamma + 1] of fewest, gpu_ns, cpu_ns float64 [A].
    """

    committed: npt.NDArray[np.int64]
    time_ns: npt.NDArray[np.float64]
    begin: npt.NDArray[np.int64]
    fewest: npt.NDArray[np.float64]
    gpu_ns: npt.NDArray[np.float64]
    cpu_ns: npt.NDArray[np.float64]


def window_bound(
    request: RequestArrays,
    model: ModelInfo,
    costs: CostTable,
    gamma: int,
    capacity: int,
    early: bool,
    serial: bool,
) -> int:
    """Time in ns below which no schedule commits `request`, whatever windows 0..gamma it takes."""
    committed = committed_tokens(request, gamma)
    first_row = first_rows(request, model.layers, model.experts, gamma)
    fewest = fewest_passes(committed, first_row)
    arcs = priced_arcs(request, model, costs, committed, first_row, fewest, early)
    copy_ns = float(costs.copy_latency_ns + costs.copy_ns)
    prices = np.array([0.05, 0.3, 0.5])
    return max(0, math.floor(best_path(arcs, float(capacity), copy_ns, serial, prices)))


def committed_tokens(request: RequestArrays, gamma: int) -> npt.NDArray[np.int64]:
    """int64 [T, gamma + 1]: tokens that a pass commits; 0 where none can begin."""
    windows = np.minimum(np.arange(gamma + 1)[None, :], request.gamma_limit[:, None])
    accepted = np.minimum(windows, request.longest[:, None])
    committed = np.minimum(accepted + 1, request.commit_limit[:, None])
    return np.where(request.begin[:, None] >= 0, committed, 0)


def priced_arcs(
    request: RequestArrays,
    model: ModelInfo,
    costs: CostTable,
    committed: npt.NDArray[np.int64],
    first_row: npt.NDArray[np.int16],
    fewest: npt.NDArray[np.int32],
    early: bool,
) -> Arcs:
    """Times of all arcs, with the same meaning as simulator.bound_stages gives them."""
    starts, windows = committed.shape
    gamma = np.minimum(np.arange(windows)[None, :], request.gamma_limit[:, None])
    context = costs.context_ns_per_1024 * (request.first + np.arange(starts)) // 1024
    routed = costs.dense_ns[gamma + 1] + context[:, None] + costs.router_ns
    fixed = routed if early else routed + costs.d2h_ns
    extra = costs.d2h_ns + costs.dispatch_ns + costs.return_ns - (0 if early else costs.d2h_ns)
    time_ns = model.layers * fixed + gamma * costs.draft_step_ns + costs.pass_ns
    begin, entries = active_entries(
        request.begin, request.experts, committed, gamma, first_row, fewest, model.experts,
        costs.gpu_ns.astype(float), costs.cpu_ns.astype(float), float(extra),
    )  # fmt: skip
    return Arcs(committed, time_ns.astype(float), begin, entries[0], entries[1], entries[2])


@kernel
def _first_rows(begin, experts, layers, per_layer, gamma):  # pragma: no cover
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


def first_rows(
    request: RequestArrays, layers: int, experts: int, gamma: int
) -> npt.NDArray[np.int16]:
    """int16 [T, layers * experts]: the first row at t that activates the expert; gamma + 1 if none
    does. The expert is active in the pass of a window if that row is in it."""
    table: npt.NDArray[np.int16] = _first_rows(
        request.begin, request.experts, layers, experts, gamma
    )
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
def best_path(arcs, capacity, copy_ns, serial, prices):  # pragma: no cover
    """The highest value found from `prices` on, float64 [3]: slot per pass in units of copy_ns,
    link, GPU lane."""
    mean, square, slope = np.zeros(3), np.zeros(3), np.zeros(3)
    best = 0.0
    for step in range(STEPS):
        best = max(best, shortest_path(arcs, capacity, copy_ns, serial, prices, slope))
        mean_scale, square_scale = 1.0 - SMOOTHING ** (step + 1), 1.0 - SCALING ** (step + 1)
        for i in range(3):
            mean[i] = SMOOTHING * mean[i] + (1.0 - SMOOTHING) * slope[i]
            square[i] = SCALING * square[i] + (1.0 - SCALING) * slope[i] * slope[i]
            move = mean[i] / mean_scale / (math.sqrt(square[i] / square_scale) + 1e-9)
            moved = prices[i] + RATE * (1.0 - step / STEPS) * move
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
