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

from policies.costs import CostTable
from simulator.bound_stages import layer_ns
from simulator.window_paths import active_entries, best_path, fewest_passes, first_rows
from traces.manifest import ModelInfo
from traces.request_arrays import RequestArrays

STEPS = 80


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
    experts = np.ascontiguousarray(request.experts)
    first_row = first_rows(request.begin, experts, model.layers, model.experts, gamma)
    fewest = fewest_passes(committed, first_row)
    arcs = priced_arcs(request, model, costs, committed, first_row, fewest, early)
    copy_ns = float(costs.copy_latency_ns + costs.copy_ns)
    prices = np.array([0.05, 0.3, 0.5])
    return max(0, math.floor(best_path(arcs, float(capacity), copy_ns, serial, prices, STEPS)))


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
    position = (request.first + np.arange(starts))[:, None]
    fixed, extra = layer_ns(costs, gamma + 1, position, early)
    time_ns = model.layers * fixed + gamma * costs.draft_step_ns + costs.pass_ns
    begin, entries = active_entries(
        request.begin, np.ascontiguousarray(request.experts), committed, gamma, first_row, fewest,
        model.experts, costs.gpu_ns.astype(float), costs.cpu_ns.astype(float), float(extra),
    )  # fmt: skip
    return Arcs(committed, time_ns.astype(float), begin, entries[0], entries[1], entries[2])
