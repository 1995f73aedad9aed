"""The released code's queue, bounded next-layer prefetch, the cutoff layer, margins."""

import numpy as np
import pytest

from policies.api import Shape
from policies.compile import python_kernel
from policies.composed import ComposedPolicy
from policies.conformance import plain_costs
from policies.ledger import FREE, READY, begin_fill, new_ledger
from policies.movers.by_utility import move_by_utility
from policies.movers.code_queue import freeze_layer, push_layer, serve_queue
from policies.movers.move import move
from policies.movers.next_layer import cutoff_layer, prefetch_next_layers
from policies.observation import new_observation
from policies.parts import ByResidency, CodeQueue, Inertia, NextLayer, Recency, Still
from policies.plan import clear_plan, new_plan
from policies.state import GAMMA, LAYER, PASS, PREDICTED_MISSES

begin_fill = python_kernel(begin_fill)
move_by_utility = python_kernel(move_by_utility)
freeze_layer = python_kernel(freeze_layer)
push_layer = python_kernel(push_layer)
serve_queue = python_kernel(serve_queue)
move = python_kernel(move)
cutoff_layer = python_kernel(cutoff_layer)
prefetch_next_layers = python_kernel(prefetch_next_layers)
clear_plan = python_kernel(clear_plan)

SHAPE = Shape(3, 4, 1, 4, 1, 3, False)


class Bench:
    """A policy's state over a pool whose slots hold the given experts (flat keys), all READY."""

    def __init__(self, policy, held=()):
        policy.reset(SHAPE, plain_costs())
        policy.start_pass(0)
        self.policy, self.state, self.program = policy, policy.state_, policy.program_
        self.ledger, self.plan = new_ledger(3, 4, 4, 1), new_plan(3, 4, 4)
        for slot, key in enumerate(held):
            begin_fill(self.ledger, key, slot)
            self.ledger.slot_state[slot] = READY
        clear_plan(self.plan, 9)

    def at(self, layer):
        self.state.clock[LAYER] = layer

    def prefetched(self):
        count = self.plan.size[1]
        return list(
            zip(
                self.plan.prefetch_expert[:count].tolist(),
                self.plan.prefetch_slot[:count].tolist(),
                strict=True,
            )
        )


def code_bench(held=()):
    return Bench(
        ComposedPolicy(
            "x", Inertia(5, 5, 1, False), ByResidency(), CodeQueue(5), quota="pool"
        ),
        held,
    )  # fmt: skip


def test_highest_level_first_then_first_in_first_out():
    bench = code_bench()
    bench.state.utility[0] = [1, 0, 3, 1]
    bench.state.utility[1] = [2, 0, 0, 3]
    for layer in (0, 1):
        bench.at(layer)
        push_layer(bench.state, layer)
    serve_queue(bench.ledger, bench.state, bench.plan)
    assert bench.prefetched() == [(2, 0), (7, 1), (4, 2), (0, 3)]


def test_residents_are_dropped_to_zero_and_rescored_by_the_queue():
    bench = code_bench(held=[0, 1, 8, 9])
    bench.state.utility[0] = [2, 0, 0, 0]
    bench.at(0)
    freeze_layer(bench.state, 0)
    assert bench.state.memory[0].tolist() == [6, 6, 6, 6]
    push_layer(bench.state, 0)
    assert bench.state.memory[0].tolist() == [0, 0, 0, 0]
    serve_queue(bench.ledger, bench.state, bench.plan)
    assert bench.state.memory[0].tolist() == [2, 0, 0, 0]
    assert bench.prefetched() == []


def test_victims_have_score_zero_and_ties_go_to_the_lowest_expert():
    bench = code_bench(held=[9, 5, 1, 0])
    bench.state.memory[0, 0] = 1  # scored: safe
    bench.state.utility[1] = [4, 0, 0, 0]
    bench.at(1)
    push_layer(bench.state, 1)
    bench.state.memory[0, 0] = 1
    serve_queue(bench.ledger, bench.state, bench.plan)
    assert bench.prefetched() == [(4, 2)]  # expert 1 in slot 2


def test_without_a_victim_the_head_blocks_everything_behind_it():
    bench = code_bench(held=[0, 1, 2, 3])
    bench.state.utility[1] = [5, 0, 0, 0]
    bench.state.utility[0] = [1, 0, 0, 0]
    bench.at(1)
    push_layer(bench.state, 0)
    push_layer(bench.state, 1)
    bench.state.memory[0] = 3
    serve_queue(bench.ledger, bench.state, bench.plan)
    assert bench.prefetched() == []
    assert bench.state.memory[0, 0] == 3, "the resident behind the head is not re-scored"
    bench.state.memory[0, 2] = 0
    serve_queue(bench.ledger, bench.state, bench.plan)
    assert bench.prefetched() == [(4, 2)]


def test_entries_of_a_layer_are_void_when_it_runs_again():
    bench = code_bench()
    bench.state.utility[0] = [3, 0, 0, 0]
    bench.state.utility[2] = [3, 0, 0, 0]
    for layer in (0, 2):
        bench.at(layer)
        push_layer(bench.state, layer)
    bench.state.clock[PASS] += 1
    bench.at(0)  # layer 0 runs again, layer 2 has not yet
    serve_queue(bench.ledger, bench.state, bench.plan)
    assert bench.prefetched() == [(8, 0)]


def test_the_ring_survives_many_passes_without_credits():
    bench = code_bench()
    bench.state.utility[:] = 1
    for number in range(50):
        bench.state.clock[PASS] = number
        for layer in range(3):
            bench.at(layer)
            push_layer(bench.state, layer)
    assert bench.state.queue[1, 1] <= bench.state.queue.shape[1] - 2
    serve_queue(bench.ledger, bench.state, bench.plan)
    assert [expert for expert, _ in bench.prefetched()] == [0, 1, 2, 3]


def next_layer_bench(part, signal="count", held=()):
    bench = Bench(ComposedPolicy("x", Recency(), ByResidency(), part, signal=signal), held)
    bench.state.quota[:] = -1
    observation = new_observation(4)
    observation.predicted[0] = [1, 0, 3, 2]
    observation.predicted[1] = [0, 2, 0, 0]
    return bench, observation


@pytest.mark.parametrize(
    ("part", "signal", "expected"),
    [
        (NextLayer(1), "count", [6, 7, 4]),
        (NextLayer(1), "bit", [4, 6, 7]),
        (NextLayer(1, per_layer=1), "count", [6]),
        (NextLayer(2, per_layer=2), "count", [6, 7, 9]),
    ],
)
def test_predicted_experts_by_count_or_number_and_limit(part, signal, expected):
    bench, observation = next_layer_bench(part, signal)
    prefetch_next_layers(bench.program, bench.ledger, bench.state, observation, bench.plan, 0, 3)
    assert [expert for expert, _ in bench.prefetched()] == expected


def test_no_prefetch_behind_the_cutoff():
    bench, observation = next_layer_bench(NextLayer(2, cutoff=True))
    prefetch_next_layers(bench.program, bench.ledger, bench.state, observation, bench.plan, 0, 2)
    assert [expert for expert, _ in bench.prefetched()] == [6, 7, 4]


def test_the_cutoff_follows_from_drafting_time_and_misses():
    """Copy 388 us, layer 105 us: with two misses a layer 671 us short; four draft steps of 4 ms
    carry 23 layers."""
    state = ComposedPolicy("x", Recency(), ByResidency(), Still())
    state.reset(Shape(48, 4, 1, 4, 1, 8, False), plain_costs())
    state = state.state_
    state.clock[GAMMA] = 4
    assert cutoff_layer(state, plain_costs(), 5) == 48, "no misses: everything fits"
    state.measured[PREDICTED_MISSES] = 2.0
    assert cutoff_layer(state, plain_costs(), 5) == 1 + int(16_000 / 671)
    state.clock[GAMMA] = 0
    assert cutoff_layer(state, plain_costs(), 1) == 1


def utility_bench(held):
    bench = Bench(ComposedPolicy("x", Recency(), ByResidency(), Still(), quota="pool"), held)
    bench.at(0)
    return bench


def test_a_margin_keeps_near_equal_experts_from_trading_places():
    bench = utility_bench([0, 1, 2, 3])
    bench.state.utility[0] = 1.0
    bench.state.utility[1, 0] = 1.4
    move_by_utility(bench.ledger, bench.state, bench.plan, False, 0.0, 0.5)
    assert bench.prefetched() == []
    move_by_utility(bench.ledger, bench.state, bench.plan, False, 0.0, 0.3)
    assert [expert for expert, _ in bench.prefetched()] == [4]


def test_proximity_prefers_layers_that_run_soon():
    for proximity, expected in ((0.0, [8, 4]), (1.0, [4, 8])):
        bench = utility_bench([])
        bench.state.utility[1, 0], bench.state.utility[2, 0] = 1.0, 1.2
        move_by_utility(bench.ledger, bench.state, bench.plan, False, proximity, 0.0)
        assert [expert for expert, _ in bench.prefetched()] == expected


def test_what_this_plan_copies_is_not_copied_twice():
    bench = utility_bench([])
    bench.state.utility[0, 1] = 5.0
    bench.plan.placement[1] = 3  # FETCH
    move_by_utility(bench.ledger, bench.state, bench.plan, False, 0.0, 0.0)
    assert bench.prefetched() == []
    assert (bench.ledger.slot_state == FREE).all()
    assert np.all(bench.plan.taken == 0)


def test_a_predicted_expert_of_high_utility_is_copied_once():
    part = NextLayer(1, per_layer=1, then_utility=True)
    bench, observation = next_layer_bench(part)
    bench.at(0)
    bench.state.utility[1, 2] = 5.0
    bench.state.utility[2, 0] = 4.0
    move(bench.program, bench.state, plain_costs(), bench.ledger, observation, bench.plan)
    assert [expert for expert, _ in bench.prefetched()] == [6, 8]
