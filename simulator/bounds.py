"""Lower bounds on decode time that hold for every policy, clairvoyant or not.

Relaxation: copies may be split, stop and go on; decisions, contention, credits and priced needs
cost nothing; whatever is resident when a block of passes begins is free. Any schedule that the
engines can play is a feasible point, so the optimum of the linear program is a lower bound, and so
is the objective of any dual point, which is what is reported.

fast: prices over whole requests (simulator.relaxed_bound, simulator.window_bound), milliseconds a
request. lp: the linear program by stages over blocks of passes as well, the higher of the two;
seconds a request.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import scipy.optimize

from policies.costs import CostTable
from policies.errors import UserError
from simulator.bound_program import LinearProgram, block_program
from simulator.bound_stages import PassStages, pass_stages
from simulator.relaxed_bound import relaxed_bound
from simulator.relaxed_request import relaxed_request
from simulator.requirements import check_gamma
from simulator.settings import SimulationSettings
from simulator.window_bound import window_bound
from traces.replay import Replay

Method = Literal["fast", "lp"]


def decode_bound(
    replay: Replay,
    costs: CostTable,
    settings: SimulationSettings,
    any_window: bool = False,
    method: Method = "fast",
) -> int:
    """Decode time in ns of the measured requests (warm-up apart) below which no policy can get.

    `any_window`: for policies that choose windows of 0..settings.gamma themselves; otherwise every
    pass has settings.gamma, and a trace with a fixed window always has that.
    """
    if method not in get_args(Method):
        raise UserError(f"bound={method}: there are {', '.join(get_args(Method))}")
    check_gamma(replay, settings.gamma)
    requests = replay.request_ids[: settings.requests][settings.warmup_requests :]
    free = any_window and replay.fixed_gamma is None and settings.gamma > 0
    bound = sum(_fast_bound(replay, one, costs, settings, free) for one in requests)
    if method == "fast":
        return bound
    if free:
        return max(bound, window_lower_bound(replay, costs, settings, requests))
    return max(bound, lower_bound(replay, costs, settings, requests))


def _fast_bound(
    replay: Replay, request: int, costs: CostTable, settings: SimulationSettings, free: bool
) -> int:
    capacity, serial = settings.slots + settings.staging, settings.lanes == "serial"
    if free:
        return window_bound(
            replay.arrays(request), replay.model, costs, settings.gamma, capacity,
            early=settings.launch == "early", serial=serial,
        )  # fmt: skip
    stages = _request_stages(replay, request, costs, settings)
    packed = relaxed_request(stages)
    return relaxed_bound(packed, capacity, costs.copy_latency_ns + costs.copy_ns, serial)


def lower_bound(
    replay: Replay,
    costs: CostTable,
    settings: SimulationSettings,
    requests: Sequence[int] | None = None,
    passes_per_block: int = 4,
) -> int:
    """Decode time in ns (prefill apart) below which no policy can get with window settings.gamma.

    `requests`: those to bound, by default all that the settings play. Larger blocks give a higher
    bound and take longer. Meaningless for policies that choose other windows.
    """
    if passes_per_block < 1:
        raise UserError(f"passes_per_block={passes_per_block}: must be at least 1")
    check_gamma(replay, settings.gamma)
    played = replay.request_ids[: settings.requests] if requests is None else requests
    total = 0
    for request in played:
        stages = _request_stages(replay, request, costs, settings)
        # A block never spans two requests: copies made during prefill would be forgotten.
        for begin in range(0, len(stages), passes_per_block):
            total += solve(_program(stages[begin : begin + passes_per_block], costs, settings))
    return total


def window_lower_bound(
    replay: Replay, costs: CostTable, settings: SimulationSettings, requests: Sequence[int]
) -> int:
    """Decode time in ns of `requests` below which no policy can get with windows of its choice in
    0..settings.gamma: the shortest path over the text, a linear program per pass that can begin."""
    total = 0
    for request in requests:
        first, end = replay.first(request), replay.end(request)
        shortest: dict[int, int] = {first: 0}
        for start in range(first, end):
            if start not in shortest:
                continue
            for gamma in range(settings.gamma + 1):
                window = replay.window(request, start, gamma)
                stages = pass_stages(window, replay.model, costs, settings.launch == "early")
                reached = shortest[start] + solve(_program([stages], costs, settings))
                after = start + window.committed
                shortest[after] = min(reached, shortest.get(after, reached))
        total += shortest[end]
    return total


def solve(program: LinearProgram) -> int:
    """Optimum of `program` in ns, as a dual objective that is checked and rounded down."""
    result = scipy.optimize.linprog(
        program.objective, A_ub=program.matrix, b_ub=program.limit,
        bounds=np.column_stack([program.lowest, program.highest]), method="highs",
    )  # fmt: skip
    if result.status != 0:
        raise RuntimeError(f"HiGHS did not solve the bound: {result.message}")
    return math.floor(program.unit_ns * dual_objective(program, result.ineqlin.marginals))


def dual_objective(program: LinearProgram, marginals: np.ndarray) -> float:
    """Lower bound from any multipliers [constraints]: those above 0 count as 0. Needs no trust in
    the solver, since all variables are bounded; the error of summation is taken off."""
    multipliers = np.minimum(marginals, 0.0)
    reduced = program.objective - program.matrix.T @ multipliers
    terms = np.concatenate(
        [
            multipliers * program.limit,
            np.minimum(reduced * program.lowest, reduced * program.highest),
        ]
    )
    return math.fsum(terms) - 1e-11 * math.fsum(np.abs(terms))


def _program(
    stages: Sequence[PassStages], costs: CostTable, settings: SimulationSettings
) -> LinearProgram:
    return block_program(
        stages,
        capacity=settings.slots + settings.staging,
        copy_ns=costs.copy_latency_ns + costs.copy_ns,
        serial=settings.lanes == "serial",
    )


def _request_stages(
    replay: Replay, request: int, costs: CostTable, settings: SimulationSettings
) -> list[PassStages]:
    stages = []
    start, end = replay.first(request), replay.end(request)
    while start < end:
        window = replay.window(request, start, settings.gamma)
        stages.append(pass_stages(window, replay.model, costs, early=settings.launch == "early"))
        start += window.committed
    return stages
