"""Lower bounds from linear programs solved by HiGHS: slower and higher than the fast bound.

A block of passes is one program (`bound_program`); windows of free choice are a shortest path
over the text, with one program per pass that can begin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.optimize

from policies.costs import CostTable
from policies.errors import UserError
from simulator.bound_program import LinearProgram, block_program
from simulator.bound_stages import PassStages, pass_stages, request_stages
from simulator.requirements import check_gamma
from simulator.settings import SimulationSettings
from traces.replay import Replay


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
        stages = request_stages(replay, request, costs, settings)
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
