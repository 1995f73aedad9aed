"""A lower bound on decode time that holds for every policy, clairvoyant or not.

Relaxation: copies may be split, stop and go on; decisions, contention, credits and priced needs
cost nothing; whatever is resident when a block of passes begins is free. Any schedule that the
engines can play is a feasible point, so the optimum of the linear program is a lower bound, and so
is the objective of any dual point, which is what is reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.optimize

from policies.costs import CostTable
from policies.errors import UserError
from simulator.bound_program import LinearProgram, block_program
from simulator.bound_stages import PassStages, pass_stages
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
        stages = _request_stages(replay, request, costs, settings)
        # A block never spans two requests: copies made during prefill would be forgotten.
        for begin in range(0, len(stages), passes_per_block):
            program = block_program(
                stages[begin : begin + passes_per_block],
                capacity=settings.slots + settings.staging,
                copy_ns=costs.copy_latency_ns + costs.copy_ns,
                serial=settings.lanes == "serial",
            )
            total += solve(program)
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
