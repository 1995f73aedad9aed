"""The threshold program of MoE-SpAc as an integer program for PuLP: the reference of the exact
enumeration.

Variables: integer tau in 1..K+1, one binary per expert (hot), and the join time T. It is slow
(milliseconds) and used
only to check `threshold.solve_threshold`; PuLP is imported here and nowhere else.
"""

from __future__ import annotations

import numpy as np
import pulp


class NotSolved(Exception):
    """The solver ended without an optimum; its status is in the message."""


def solve_threshold_reference(
    levels: np.ndarray,
    resident: np.ndarray,
    cpu_ns: np.ndarray,
    gpu_ns: np.ndarray,
    copies_allowed: int,
    slots_allowed: int,
    top: int,
) -> tuple[int, int]:
    """levels int [experts] in 0..top, resident bool [experts] -> (largest optimal tau, objective
    ns).

    Two solves: the objective first, then the largest tau that attains it.
    """
    experts = range(len(levels))
    problem = pulp.LpProblem("threshold", pulp.LpMinimize)
    tau = pulp.LpVariable("tau", 1, top + 1, cat="Integer")
    join = pulp.LpVariable("join", 0)
    hot = [pulp.LpVariable(f"hot_{expert}", cat="Binary") for expert in experts]
    big = top + 2
    clip = len(cpu_ns) - 1
    for expert in experts:
        level = int(levels[expert])
        problem += level - tau >= -big * (1 - hot[expert])  # hot implies level >= tau
        problem += level - tau <= big * hot[expert] - 1  # cold implies level < tau
    problem += join >= pulp.lpSum(
        int(cpu_ns[min(int(levels[expert]), clip)]) * (1 - hot[expert]) for expert in experts
    )
    problem += join >= pulp.lpSum(
        int(gpu_ns[min(int(levels[expert]), clip)]) * hot[expert] for expert in experts
    )
    problem += pulp.lpSum(hot[expert] for expert in experts if not resident[expert]) <= int(
        copies_allowed
    )
    problem += pulp.lpSum(hot) <= int(slots_allowed)
    problem.setObjective(join)
    _solve(problem)
    best = round(pulp.value(join))
    problem += join <= best
    problem.setObjective(-1 * tau)
    _solve(problem)
    return round(pulp.value(tau)), best


def _solve(problem: pulp.LpProblem) -> None:
    # CBC: HiGHS with threads=1 after another solve in one process says "Not Solved", with zeros.
    status = problem.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0, gapAbs=0))
    if pulp.LpStatus[status] != "Optimal":
        raise NotSolved(f"threshold program: {pulp.LpStatus[status]}")
