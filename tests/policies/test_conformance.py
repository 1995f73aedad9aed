"""Every policy of the zoo passes the public suite; broken policies are caught, each by the rule it
breaks."""

import numpy as np
import pytest

from policies.api import CPU, FETCH, GPU, STREAM, Copy, LayerPlan
from policies.conformance import SCENARIOS, check_policy, drive, same
from policies.session import IllegalPlan
from policies.zoo import ZOO, lru_fetch
from tests.policies.plain_lru import PlainLru


@pytest.mark.parametrize("name", sorted(ZOO))
def test_the_zoo_conforms(name):
    assert check_policy(ZOO[name]) > 200
    assert ZOO[name]().name == name


def test_a_policy_in_plain_python_conforms():
    assert check_policy(PlainLru) > 200


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_plain_python_lru_equals_the_compiled_one(scenario):
    compiled, plain = drive(lru_fetch(), scenario), drive(PlainLru(), scenario)
    for place, (one, other) in enumerate(zip(compiled, plain, strict=True)):
        assert same(one, other), place


class Remembering(PlainLru):
    """Drafts one token less in every run after the first: state that survives reset."""

    name = "remembering"
    runs = -1

    def reset(self, shape, costs):
        super().reset(shape, costs)
        self.runs += 1

    def start_pass(self, last_token):
        return max(0, super().start_pass(last_token) - self.runs)


def test_state_that_survives_reset_is_caught():
    with pytest.raises(AssertionError):
        check_policy(Remembering)


class Random(PlainLru):
    """Draws from a generator that all its instances share."""

    name = "random"
    draws = np.random.default_rng(0)

    def enter_layer(self, routing, view):
        if self.draws.random() < 0.5:
            return LayerPlan(dict.fromkeys(map(int, np.unique(routing.experts)), CPU))
        return super().enter_layer(routing, view)


def test_hidden_randomness_is_caught():
    with pytest.raises(AssertionError):
        check_policy(Random)


def broken(plan):
    """A policy that returns `plan(routing, view, active)` at every layer."""

    class Broken(PlainLru):
        name = "broken"

        def enter_layer(self, routing, view):
            return plan(routing, view, [int(expert) for expert in np.unique(routing.experts)])

    return Broken


def on(active, placement):
    return dict.fromkeys(active, placement)


ILLEGAL = {
    "no placement": lambda r, v, a: LayerPlan({}),
    "not active": lambda r, v, a: LayerPlan(
        on(a, CPU) | {next(e for e in range(99) if e not in a): CPU}
    ),
    "not resident": lambda r, v, a: LayerPlan(on(a, GPU)),
    "no demand copy": lambda r, v, a: LayerPlan(on(a, STREAM)),
    "not placed FETCH": lambda r, v, a: LayerPlan(on(a, CPU), (Copy(8 * r.layer + a[0], 0),)),
    "no copy of it is under way": lambda r, v, a: LayerPlan(
        on(a, CPU) | {a[0]: FETCH}, (Copy(8 * r.layer + a[0], -1),)
    ),
    "slot number is out of range": lambda r, v, a: LayerPlan(
        on(a, CPU) | {a[0]: FETCH}, (Copy(8 * r.layer + a[0], 99),)
    ),
    "more prefetches than credits": lambda r, v, a: LayerPlan(
        on(a, CPU), (), tuple(Copy(expert, expert % 6) for expert in range(9))
    ),
    "already has a slot": lambda r, v, a: LayerPlan(on(a, CPU), (), (Copy(1, 0), Copy(1, 1))),
    "still FILLING": lambda r, v, a: LayerPlan(on(a, CPU), (), (Copy(1, 0), Copy(2, 0))),
    "two demand copies": lambda r, v, a: LayerPlan(
        on(a, CPU) | {a[0]: STREAM},
        (Copy(8 * r.layer + a[0], -1), Copy(8 * r.layer + a[0], -1)),
    ),
}


@pytest.mark.parametrize("reason", sorted(ILLEGAL))
def test_every_illegal_plan_is_refused_by_name(reason):
    with pytest.raises(IllegalPlan, match=reason) as caught:
        drive(broken(ILLEGAL[reason])(), SCENARIOS[0])
    assert "broken" in str(caught.value)


def test_early_launch_refuses_a_resident_expert_off_the_gpu():
    class Early(PlainLru):
        name = "early"

        def enter_layer(self, routing, view):
            plan = super().enter_layer(routing, view)
            return LayerPlan(
                {e: CPU if p == GPU else p for e, p in plan.placement.items()}, plan.demand
            )

    with pytest.raises(IllegalPlan, match="launch=early"):
        drive(Early(), SCENARIOS[1])
