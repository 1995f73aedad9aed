"""The exact search of the assignment program against brute force and PuLP; greedy and its
distance."""

import numpy as np
import pytest

from policies.balancers.assignment import MISSING, RESIDENT, join_of, solve_assignment
from policies.balancers.assignment_greedy import solve_by_gain, solve_greedily
from policies.balancers.assignment_reference import solve_assignment_reference
from tests.policies.assignment_instances import (
    NO_NODE_LIMIT,
    Instance,
    brute_force,
    class_arrays,
    instance,
    physics,
    solve,
)


def reference(one: Instance) -> tuple[int, int]:
    return solve_assignment_reference(
        one.kind.tolist(), one.forced.tolist(), one.cpu_ns[one.rows].tolist(),
        one.gpu_ns[one.rows].tolist(), *physics(one),
    )  # fmt: skip


def value(one: Instance, chosen: np.ndarray) -> tuple[int, int]:
    kind, rows, available, _ = class_arrays(one)
    return join_of(
        kind, available, one.cpu_ns[rows], one.gpu_ns[rows], *physics(one)[:4], chosen
    )  # fmt: skip


def greedy(one: Instance, solver=solve_greedily) -> tuple[int, int, np.ndarray]:
    kind, rows, available, forced = class_arrays(one)
    chosen = np.zeros(len(kind), np.int64)
    join, copies = solver(
        kind, available, forced, one.cpu_ns[rows], one.gpu_ns[rows], *physics(one), chosen
    )
    return int(join), int(copies), chosen


@pytest.mark.parametrize("seed", range(0, 6_000, 1_000))
def test_exact_search_equals_brute_force(seed):
    for offset in range(500):
        one = instance(seed + offset, most=5)
        join, copies, chosen = solve(one)
        assert (join, copies) == brute_force(one), seed + offset
        assert value(one, chosen) == (join, copies), seed + offset


def test_exact_search_equals_the_integer_program_on_300_instances():
    for seed in range(300):
        one = instance(seed)
        assert solve(one)[:2] == reference(one), seed


@pytest.mark.slow
def test_exact_search_equals_the_integer_program_on_10_000_instances():
    for seed in range(1_000_000, 1_010_000):
        one = instance(seed)
        assert solve(one)[:2] == reference(one), seed


def test_every_assignment_respects_the_limits():
    for seed in range(2_000):
        one = instance(seed, most=20)
        kind, _, available, forced = class_arrays(one)
        for _, copies, chosen in (solve(one), greedy(one), greedy(one, solve_by_gain)):
            assert (chosen >= forced).all() and (chosen <= available).all(), seed
            assert chosen[kind == MISSING].sum() == copies <= one.copies_allowed, seed


def test_greedy_reports_its_own_join_and_never_beats_the_optimum():
    for seed in range(2_000):
        one = instance(seed)
        for solver in (solve_greedily, solve_by_gain):
            join, copies, chosen = greedy(one, solver)
            assert value(one, chosen) == (join, copies)
            assert join >= solve(one)[0]


def layer_of_40(seed: int, hits: float, early: bool) -> Instance:
    """A layer of Qwen3-30B-A3B's size: CPU expert 0.145 ms, copy 0.382 ms, GPU expert 0.02 ms."""
    random = np.random.default_rng(seed)
    tokens = np.arange(10, dtype=np.int64)
    return Instance(
        np.where(random.random(40) < hits, RESIDENT, MISSING),
        np.minimum(random.geometric(0.35, 40), 9),
        early,
        np.where(tokens > 0, 100_000 + 45_000 * tokens, 0),
        np.where(tokens > 0, 18_000 + 700 * tokens, 0),
        -20_000 if early else 0,
        int(random.integers(0, 3)) * 382_000,
        382_000,
        15_000,
        40,
    )


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("hits", [0.0, 0.4, 0.8])
def test_the_distance_of_both_greedy_ways_at_the_size_of_a_real_layer(hits, early):
    """Mean over 200 layers: by workload up to 1.35 times the optimum, by gain within 5 %."""
    ratios = {solve_greedily: [], solve_by_gain: []}
    for seed in range(200):
        one = layer_of_40(seed, hits, early)
        for solver, found in ratios.items():
            found.append(greedy(one, solver)[0] / solve(one)[0])
    assert 1.0 <= np.mean(ratios[solve_greedily]) < 1.35
    assert 1.0 <= np.mean(ratios[solve_by_gain]) < 1.05


def test_few_nodes_are_searched_for_40_experts():
    """What a node costs is in the bench; how many there are does not depend on the machine."""
    nodes = []
    for seed in range(300):
        one = layer_of_40(seed, 0.1 * (seed % 10), bool(seed % 2))
        kind, rows, available, forced = class_arrays(one)
        cpu, gpu, chosen = one.cpu_ns[rows], one.gpu_ns[rows], np.zeros(len(kind), np.int64)
        nodes.append(solve_assignment(
            kind, available, forced, cpu, gpu, *physics(one), NO_NODE_LIMIT, chosen
        )[2])  # fmt: skip
    assert np.median(nodes) < 250 and max(nodes) < 2500


def test_a_node_limit_still_gives_a_legal_plan():
    one = layer_of_40(0, 1.0, False)
    kind, rows, available, forced = class_arrays(one)
    chosen = np.zeros(len(kind), np.int64)
    join, copies, nodes = solve_assignment(
        kind, available, forced, one.cpu_ns[rows], one.gpu_ns[rows], *physics(one), 5, chosen
    )
    assert nodes <= len(kind) + 6
    assert value(one, chosen) == (join, copies)
    assert join >= solve(one)[0]


def test_no_expert_at_all():
    nothing = np.zeros(0, np.int64)
    assert solve_assignment(
        nothing, nothing, nothing, nothing, nothing, -7, 0, 10, 5, 3, 100, nothing
    ) == (-7, 0, 0)


def test_residents_move_to_the_cpu_only_where_the_plan_comes_first():
    """launch=late: ten residents of 100 ns; two moved to the CPU (2 x 300 + 15 ns) end the layer at
    800 instead of 1000."""
    kind, rows = np.zeros(10, np.int64), np.ones(10, np.int64)
    table = np.array([0, 300]), np.array([0, 100])
    late = Instance(kind, rows, False, *table, 0, 0, 50, 15, 9)
    early = late._replace(early=True)
    assert solve(late)[0] == 800
    assert solve(early)[0] == 1000
