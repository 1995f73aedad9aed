"""Section solvers: the two exact solvers from Python, beside CBC through PuLP on the same
instances, and how far greedy ways are from the optimum."""

import time
from collections.abc import Callable, Iterator

import numpy as np

from experiments.benchmarks.layers import (
    ACTIVE,
    CPU_NS,
    EXPERTS,
    GPU_NS,
    AssignedLayer,
    ThresholdLayer,
    assigned_layer,
    threshold_layer,
)
from experiments.benchmarks.measures import Bench, Measure
from experiments.benchmarks.timing import spread, spread_of_calls
from policies.balancers.assigned import NODE_LIMIT
from policies.balancers.assignment import solve_assignment
from policies.balancers.assignment_greedy import solve_by_gain, solve_greedily
from policies.balancers.assignment_reference import solve_assignment_reference
from policies.balancers.threshold import solve_threshold
from policies.balancers.threshold_reference import NotSolved, solve_threshold_reference

SECTION = "solvers"
THRESHOLD_GOAL_US = 5.0
ASSIGNMENT_GOAL_US = 150.0
FEW_ACTIVE = 12  # which CBC solves in time
LIMIT_S = 5.0  # for each of the two solves of an assignment; CBC may need far longer


def measure_solvers(bench: Bench) -> Iterator[Measure]:
    """Both programs: ours, CBC, their objectives; then the distance of two greedy ways."""
    size = bench.size
    levels = [threshold_layer(seed) for seed in range(size.instances)]
    yield from beside_cbc(
        f"threshold of {EXPERTS} experts", THRESHOLD_GOAL_US,
        [lambda one=one: threshold(one) for one in levels],
        [lambda one=one: threshold_by_cbc(one) for one in levels[: size.cbc_instances]],
    )  # fmt: skip
    for active, goal in ((FEW_ACTIVE, None), (ACTIVE, ASSIGNMENT_GOAL_US)):
        layers = [assigned_layer(seed, active) for seed in range(size.instances)]
        yield from beside_cbc(
            f"assignment of {active} experts", goal,
            [lambda one=one: assign(one) for one in layers],
            [lambda one=one: assign_by_cbc(one) for one in layers[: size.cbc_instances]],
        )  # fmt: skip
    exact = np.array([assign(one) for one in layers])
    for name, solver in (("by workload", solve_greedily), ("by gain", solve_by_gain)):
        above = 100 * (np.array([assign(one, solver) for one in layers]) / exact - 1)
        yield Measure(
            SECTION, f"greedy {name}: join above the optimum, mean", float(above.mean()), "%",
            note=f"worst {above.max():.1f} % of {len(layers)}",
        )  # fmt: skip


def beside_cbc(
    what: str, goal_us: float | None, ours: list[Callable[[], int]], theirs: list[Callable[[], int]]
) -> Iterator[Measure]:
    """Times of both; how many objectives differ on the first instances, which CBC solves too."""
    ours[0]()  # compiled, or loaded from the disk
    mine = spread_of_calls(ours)
    times_ns, unproven, differ = [], 0, 0
    for fast, slow in zip(ours, theirs, strict=False):
        begin = time.perf_counter_ns()
        try:
            differ += slow() != fast()
        except NotSolved:
            unproven += 1
        times_ns.append(time.perf_counter_ns() - begin)
    cbc, compared = spread(times_ns), len(theirs) - unproven
    stopped = f"; {unproven} of {len(theirs)} stopped after {LIMIT_S:.0f} s" if unproven else ""
    yield Measure(
        SECTION, f"{what}: ours, median", mine.median_ns / 1e3, "us",
        None if goal_us is None else "at most", goal_us,
        note=f"p99 {mine.p99_ns / 1e3:.3g} us, {len(ours)} instances",
    )  # fmt: skip
    yield Measure(
        SECTION, f"{what}: CBC through PuLP, median", cbc.median_ns / 1e6, "ms",
        note=f"p99 {cbc.p99_ns / 1e6:.4g} ms{stopped}",
    )  # fmt: skip
    yield Measure(
        SECTION, f"{what}: times as fast as CBC", cbc.median_ns / mine.median_ns, "x",
        note="a lower limit, CBC was stopped" if unproven else "",
    )  # fmt: skip
    if compared:
        yield Measure(
            SECTION, f"{what}: optima that differ from CBC's", differ, f"of {compared}", "at most",
            0,
        )  # fmt: skip


def threshold(one: ThresholdLayer) -> int:
    """The objective in ns by enumeration."""
    _, best = solve_threshold(
        one.members, one.missing, CPU_NS, GPU_NS, one.copies_allowed, one.slots_allowed
    )
    return int(best)


def threshold_by_cbc(one: ThresholdLayer) -> int:
    """The objective in ns by CBC."""
    _, best = solve_threshold_reference(
        one.levels, one.resident, CPU_NS, GPU_NS, one.copies_allowed,
        one.slots_allowed, len(one.members) - 1,
    )  # fmt: skip
    return best


def assign(one: AssignedLayer, solver: Callable[..., tuple[int, int]] | None = None) -> int:
    """The join in ns by `solver`, or by the exact search with the node limit of the policies."""
    chosen = np.zeros(len(one.kind), np.int64)
    classes = (one.kind, one.available, one.forced, one.cpu_ns, one.gpu_ns)
    if solver is None:
        return int(solve_assignment(*classes, *one.physics, NODE_LIMIT, chosen)[0])
    return int(solver(*classes, *one.physics, chosen)[0])


def assign_by_cbc(one: AssignedLayer) -> int:
    """The join in ns by CBC."""
    return solve_assignment_reference(*one.each(), *one.physics, LIMIT_S)[0]
