"""The lower bound: cases with a known optimum, and proof that it needs no trust in the solver."""

import numpy as np
import pytest

from policies import parts
from policies.composed import ComposedPolicy
from policies.errors import UserError
from simulator.bound_program import block_program
from simulator.bound_stages import pass_stages
from simulator.exact_bound import dual_objective, lower_bound, solve
from simulator.reference import simulate
from tests.simulator.scenes import ListReplay, one_row, round_costs, settings

SCENE = ListReplay([[one_row([0, 1], [2, 3])] * 3], experts=4)
PASSES, LAYERS = 3, 2


def near(expected: int) -> object:
    """Exact up to the 1 ns that rounding down may take."""
    return pytest.approx(expected, abs=1)


def test_everything_resident_is_gpu_time_alone() -> None:
    # So slow a CPU that no fraction of an expert is worth giving to it.
    costs = round_costs(cpu_ns=np.arange(13, dtype=np.int64) * 1_000_000)
    late = PASSES * (LAYERS * (550 + 30 + 400) + 90)
    early = PASSES * (LAYERS * (550 + 400) + 90)
    assert lower_bound(SCENE, costs, settings(slots=8)) == near(late)
    assert lower_bound(SCENE, costs, settings(slots=8, launch="early")) == near(early)


def test_a_slow_gpu_leaves_everything_to_the_cpu() -> None:
    costs = round_costs(gpu_ns=np.arange(13, dtype=np.int64) * 1_000_000)
    # Fractions would help here: the LP may give the GPU a share of an expert.
    bound = lower_bound(SCENE, costs, settings(slots=8))
    all_cpu = PASSES * (LAYERS * (550 + 30 + 40 + 2000 + 60) + 90)
    assert 0.97 * all_cpu < bound <= all_cpu


def test_serial_lanes_add_up() -> None:
    concurrent = lower_bound(SCENE, round_costs(), settings(slots=1, staging=0))
    serial = lower_bound(SCENE, round_costs(), settings(slots=1, staging=0, lanes="serial"))
    assert serial > concurrent


def test_one_slot_for_two_experts() -> None:
    """No time to copy: half of each expert is resident, and half a hand-over is paid."""
    replay = ListReplay([[one_row([0, 1])]], experts=4)
    costs = round_costs(copy_ns=10**9)
    bound = lower_bound(replay, costs, settings(slots=1, staging=0, lanes="serial"))
    assert bound == near(550 + 30 + 100 // 2 + 200 + 1000 + 90)


def test_larger_blocks_give_a_higher_bound_and_never_beat_a_run() -> None:
    order = np.random.default_rng(1).random((6, 3, 2, 8)).argsort(axis=3)[..., :2]
    replay = ListReplay([list(order)], experts=8, accepted=0)
    chosen = settings(gamma=2, slots=4)
    bounds = [lower_bound(replay, round_costs(), chosen, passes_per_block=n) for n in (1, 2, 6)]
    assert bounds == sorted(bounds) and bounds[0] < bounds[2]
    belady = ComposedPolicy(
        "belady", parts.NextUse(), parts.FetchMisses(bypass=True), parts.Still()
    )
    log = simulate(replay, belady, round_costs(), chosen)
    assert bounds[2] <= int((log.passes["end_ns"] - log.passes["begin_ns"]).sum())


def test_more_slots_never_raise_the_bound() -> None:
    order = np.random.default_rng(2).random((4, 2, 2, 8)).argsort(axis=3)[..., :3]
    replay = ListReplay([list(order)], experts=8)
    bounds = [lower_bound(replay, round_costs(), settings(slots=n, gamma=1)) for n in (1, 4, 9, 16)]
    assert bounds == sorted(bounds, reverse=True)


def test_any_multipliers_give_a_bound() -> None:
    stages = [
        pass_stages(SCENE.window(0, start, 0), SCENE.model, round_costs(), early=False)
        for start in range(PASSES)
    ]
    program = block_program(stages, capacity=3, copy_ns=400, serial=False)
    optimum = solve(program)
    generator = np.random.default_rng(0)
    for _ in range(50):
        guess = -generator.random(len(program.limit)) * generator.integers(0, 3, len(program.limit))
        assert dual_objective(program, guess) * program.unit_ns <= optimum + 1
    assert dual_objective(program, np.ones(len(program.limit))) * program.unit_ns <= optimum + 1


def test_requests_can_be_chosen() -> None:
    replay = ListReplay([[one_row([0, 1])] * 2, [one_row([0, 1])]], experts=4)
    both = lower_bound(replay, round_costs(), settings())
    parts_of_it = [lower_bound(replay, round_costs(), settings(), requests=[r]) for r in (0, 1)]
    assert both == sum(parts_of_it)


def test_impossible_questions_are_refused() -> None:
    with pytest.raises(UserError, match="passes_per_block=0"):
        lower_bound(SCENE, round_costs(), settings(), passes_per_block=0)
    with pytest.raises(UserError, match="gamma=1"):
        lower_bound(SCENE, round_costs(), settings(gamma=1))
