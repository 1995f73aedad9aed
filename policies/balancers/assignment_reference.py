"""The assignment program of `assignment` as a mixed-integer program for PuLP: the reference of the
exact search.

One binary per expert (on the GPU or not), the join as a variable, and the copies in the order of
falling GPU time. It takes milliseconds and serves only as a check; PuLP is imported in reference
solvers and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulp

from policies.balancers.assignment import MISSING, RESIDENT, UNDER_WAY
from policies.balancers.threshold_reference import NotSolved


def solve_assignment_reference(
    kind: Sequence[int],
    forced: Sequence[bool],
    cpu_ns: Sequence[int],
    gpu_ns: Sequence[int],
    gpu_start_ns: int,
    link_free_ns: int,
    copy_ns: int,
    cpu_extra_ns: int,
    copies_allowed: int,
    limit_s: float | None = None,
) -> tuple[int, int]:
    """One entry per expert -> (join ns, fewest new copies that attain it). Two solves: the join
    first, then the copies; NotSolved if one has no proven optimum after `limit_s` seconds."""
    experts = range(len(kind))
    resident = [e for e in experts if kind[e] == RESIDENT]
    under_way = [e for e in experts if kind[e] == UNDER_WAY]
    missing = sorted((e for e in experts if kind[e] == MISSING), key=lambda e: -gpu_ns[e])
    horizon = (
        abs(gpu_start_ns) + link_free_ns + len(missing) * copy_ns + cpu_extra_ns
        + sum(cpu_ns) + sum(gpu_ns) + 1
    )  # fmt: skip
    problem = pulp.LpProblem("assignment", pulp.LpMinimize)
    join = pulp.LpVariable("join", min(gpu_start_ns, 0))
    on_gpu = [pulp.LpVariable(f"gpu_{e}", 1 if forced[e] else 0, 1, cat="Integer") for e in experts]
    any_cpu = pulp.LpVariable("any_cpu", cat="Binary")
    problem += pulp.lpSum(on_gpu[e] for e in missing) <= copies_allowed
    # GPU lane: nothing overlaps, and whatever waits for a landing cannot begin before it.
    computed = pulp.lpSum(gpu_ns[e] * on_gpu[e] for e in experts)
    problem += join >= gpu_start_ns + computed
    later = pulp.lpSum(gpu_ns[e] * on_gpu[e] for e in under_way + missing)
    for e in under_way:
        problem += join >= link_free_ns + later - horizon * (1 - on_gpu[e])
    for place, e in enumerate(missing):
        landing = link_free_ns + copy_ns * pulp.lpSum(on_gpu[i] for i in missing[: place + 1])
        tail = pulp.lpSum(gpu_ns[i] * on_gpu[i] for i in missing[place:])
        problem += join >= landing + tail - horizon * (1 - on_gpu[e])
    # CPU lane: dispatch and return only where there is work.
    for e in resident + under_way + missing:
        if cpu_ns[e] > 0:
            problem += any_cpu >= 1 - on_gpu[e]
    work = pulp.lpSum(cpu_ns[e] * (1 - on_gpu[e]) for e in experts)
    problem += join >= cpu_extra_ns + work - horizon * (1 - any_cpu)
    problem.setObjective(join)
    _solve(problem, limit_s)
    best = round(pulp.value(join))
    problem += join <= best + 0.5  # all times are integers; CBC's tolerance is not
    problem.setObjective(pulp.lpSum(on_gpu[e] for e in missing) + 0 * join)
    _solve(problem, limit_s)
    return best, sum(round(pulp.value(on_gpu[e])) for e in missing)


def _solve(problem: pulp.LpProblem, limit_s: float | None) -> None:
    solver = pulp.PULP_CBC_CMD(msg=False, gapRel=0, gapAbs=0, timeLimit=limit_s)
    status = pulp.LpStatus[problem.solve(solver)]
    # At the limit PuLP calls any solution "Optimal" and says only here that it may not be.
    if status != "Optimal" or problem.sol_status != pulp.LpSolutionOptimal:
        raise NotSolved(f"assignment program: {status}, without proof of an optimum")
