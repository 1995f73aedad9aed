"""Session: credits, staging numbers, landed counts, and what it refuses before anything runs."""

import numpy as np
import pytest

from policies.api import STREAM, Copy, LayerPlan, Routing, Shape
from policies.conformance import CountedLink, plain_costs
from policies.credits import draft_cap, layer_cap
from policies.decision import PREFETCH, STREAMED
from policies.errors import UserError
from policies.observation import HORIZON
from policies.session import IllegalPlan, Session
from policies.zoo import lru_cpu, lru_fetch
from tests.policies.plain_lru import PlainLru

SHAPE = Shape(2, 8, 2, 4, 2, 4, False)


def session(policy, shape=SHAPE, landing=99, costs=None):
    return Session(policy, shape, costs or plain_costs(), CountedLink(landing))


def rows(*experts):
    return np.array(experts, np.int32)


@pytest.mark.parametrize(
    ("layer_ns", "copy_ns", "cap"), [(0, 10, 1), (1, 10, 2), (10, 10, 2), (11, 10, 3), (900, 10, 4)]
)
def test_credits_at_a_layer(layer_ns, copy_ns, cap):
    assert layer_cap(layer_ns, copy_ns) == cap


@pytest.mark.parametrize(
    ("left", "cap"), [(0, 4), (9, 4), (10, 5), (79, 11), (80, 12), (10_000, 12)]
)
def test_credits_while_drafting(left, cap):
    assert draft_cap(left, 10) == cap


def test_streams_take_the_staging_buffers_in_turn():
    class Streaming(PlainLru):
        name = "streaming"

        def enter_layer(self, routing, view):
            active = [int(expert) for expert in np.unique(routing.experts)]
            base = routing.layer * 8
            return LayerPlan(
                dict.fromkeys(active, STREAM), tuple(Copy(base + expert, -1) for expert in active)
            )

    made = session(Streaming())
    made.start_pass(0)
    copies = made.enter_layer(Routing(0, rows([0, 1], [2, 3], [4, 5]))).copies
    assert [copy.slot for copy in copies] == [4, 5, 4, 5, 4, 5]
    assert [copy.generation for copy in copies] == [1, 1, 2, 2, 3, 3]
    assert {copy.kind for copy in copies} == {STREAMED}


def test_landed_copies_are_counted_and_become_hits():
    made = session(lru_fetch(), landing=1)
    made.start_pass(0)
    first = made.enter_layer(Routing(0, rows([0, 1])))
    assert first.landed == 0 and first.hit.tolist() == [0, 0] and len(first.copies) == 2
    made.leave_layer(0)
    made.enter_layer(Routing(1, rows([0, 1])))
    made.leave_layer(1)
    made.start_pass(0)
    again = made.enter_layer(Routing(0, rows([0, 1])))
    assert again.landed == 4 and again.hit.tolist() == [1, 1]


def test_prefetches_use_what_demand_left_of_the_credits():
    made = session(lru_cpu(), landing=0)
    made.start_pass(0)
    decision = made.enter_layer(Routing(0, rows([0, 1], [2, 3], [4, 5])))
    assert decision.credits == 2  # 115 us of layer, 382 us a copy
    assert [copy.kind for copy in decision.copies] == [PREFETCH, PREFETCH]
    assert made.leave_layer(0).copies == ()  # both are still in flight
    assert len(made.draft_step(0, 7).copies) == 0  # misses of the last pass: there was none


def test_bad_sizes_needs_gamma_and_routing_are_refused():
    with pytest.raises(UserError, match="slots=0"):
        session(lru_fetch(), SHAPE._replace(slots=0))
    with pytest.raises(UserError, match=r"slots=17.*1\.\.16"):
        session(lru_fetch(), SHAPE._replace(slots=17))
    with pytest.raises(UserError, match="not a policy"):

        class Nothing:
            name = "nothing"
            needs = frozenset()

            def reset(self, shape, costs):
                pass

        session(Nothing())

    class Greedy(PlainLru):
        name = "greedy"

        def start_pass(self, last_token):
            return 9

    with pytest.raises(IllegalPlan, match=r"gamma 9, allowed 0\.\.4"):
        session(Greedy()).start_pass(0)

    class Nosy(PlainLru):
        name = "nosy"
        needs = frozenset({"tea_leaves"})

    with pytest.raises(UserError, match="tea_leaves"):
        session(Nosy())
    made = session(lru_fetch())
    made.start_pass(0)
    with pytest.raises(IllegalPlan, match="out of range"):
        made.enter_layer(Routing(0, rows([0, 8])))


def test_impossible_costs_are_refused():
    for field, value in [("copy_ns", 0), ("contention", 0), ("contention", 1025)]:
        with pytest.raises(ValueError, match=field):
            session(lru_fetch(), costs=plain_costs()._replace(**{field: value}))
    falling = np.array([0, 5, 4], np.int64)
    with pytest.raises(ValueError, match="never fall"):
        session(lru_fetch(), costs=plain_costs()._replace(cpu_ns=falling))


def test_observations_are_withheld_unless_declared():
    seen = []

    class Curious(PlainLru):
        name = "curious"

        def enter_layer(self, routing, view):
            seen.append((routing.weights, routing.predicted))
            return super().enter_layer(routing, view)

        def draft_step(self, step, token, view):
            seen.append(token)
            return ()

    made = session(Curious())
    made.start_pass(0)
    made.draft_step(0, 1234)
    predicted = np.zeros((HORIZON, 1, 2), np.int32)
    made.enter_layer(Routing(0, rows([0, 1]), np.ones((1, 2)), predicted))
    assert seen == [-1, (None, None)]


def test_the_view_is_read_only():
    class Vandal(PlainLru):
        name = "vandal"

        def enter_layer(self, routing, view):
            view.slot_state[0] = 2
            return super().enter_layer(routing, view)

    made = session(Vandal())
    made.start_pass(0)
    with pytest.raises(ValueError, match="read-only"):
        made.enter_layer(Routing(0, rows([0, 1])))
