"""The public suite that every policy must pass, ours or a user's.

    from policies.conformance import check_policy
    from my_policy import MyPolicy
    print(check_policy(MyPolicy), "decisions checked")     # or lambda: MyPolicy(fade=0.5)

`spac policies check=my_policy.MyPolicy` does the same; policies/template.py is a policy to copy.
The suite drives fresh policies through random routing under awkward sizes and fails with an
AssertionError or an IllegalPlan that names the rule: every plan is legal, parameters stay as given,
reset forgets everything, and two objects that see the same decide the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from policies.api import NEEDS, Future, Routing, Shape
from policies.costs import CostTable
from policies.decision import STREAMED, Decision
from policies.session import Session

ROWS_MAX = 16


class Scenario(NamedTuple):
    """One run: sizes, seed, and how many copies land between two decisions.

    `reuse`: chance that a row chooses what it chose one pass before; `accuracy`: chance that the
    predictions for a row of a later layer are what it will choose, else they are any experts.
    """

    shape: Shape
    passes: int
    seed: int
    landing: int
    reuse: float = 0.0
    accuracy: float = 1.0


SCENARIOS = (
    Scenario(Shape(3, 8, 2, 6, 2, 3, False), 12, 0, 2),
    Scenario(Shape(3, 8, 2, 6, 2, 3, True), 12, 1, 1),
    Scenario(Shape(2, 4, 2, 1, 1, 2, False), 8, 2, 1),  # one slot in all
    Scenario(Shape(2, 4, 4, 8, 1, 2, True), 8, 3, 4),  # everything fits, everything active
    Scenario(Shape(4, 16, 4, 20, 3, 4, False), 10, 4, 0),  # nothing lands in time
    Scenario(Shape(1, 8, 1, 3, 1, 0, False), 10, 5, 1),  # one layer, no drafting
    # Routing that recurs and predictions that are often right, as on real traces.
    Scenario(Shape(4, 16, 4, 20, 3, 4, False), 12, 6, 2, reuse=0.5, accuracy=0.7),
)


class CountedLink:
    """A backend that lets `landing` copies land before every decision, in order of issue."""

    def __init__(self, landing: int) -> None:
        self.landing = landing
        self.waiting: list[tuple[int, int]] = []

    def start_copy(self, expert: int, slot: int, generation: int, kind: int) -> None:
        """Queue a copy; streamed experts never occupy a slot."""
        if kind != STREAMED:
            self.waiting.append((slot, generation))

    def landed(self) -> tuple[np.ndarray, np.ndarray]:
        """The oldest copies, at most `landing`."""
        done, self.waiting = self.waiting[: self.landing], self.waiting[self.landing :]
        table = np.array(done, np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]


def plain_costs() -> CostTable:
    """Costs in which a CPU expert is cheaper than a fetch, and three uses pay for one."""
    tokens = np.arange(ROWS_MAX + 1, dtype=np.int64)
    dense = np.where(tokens > 0, 100_000, 0).astype(np.int64)
    return CostTable(
        cpu_ns=tokens * 145_000,
        gpu_ns=tokens * 20_000,
        dense_ns=dense,
        context_ns_per_1024=0,
        router_ns=5_000,
        d2h_ns=10_000,
        dispatch_ns=5_000,
        return_ns=10_000,
        copy_latency_ns=6_000,
        copy_ns=382_000,
        contention=900,
        draft_step_ns=4_000_000,
        pass_ns=0,
        decision_layer_ns=10_000,
        decision_leave_ns=5_000,
        decision_draft_ns=5_000,
        needs_ns=np.zeros(len(NEEDS), np.int64),
        expert_bytes=9_437_184,
    )


def random_rows(scenario: Scenario, rows: int) -> np.ndarray:
    """int32 [passes, layers, rows, top_k], distinct experts per row, drawn from a skewed
    popularity."""
    shape = scenario.shape
    random = np.random.default_rng(scenario.seed)
    weight = random.dirichlet(np.full(shape.experts, 0.5), size=shape.layers) + 1e-3
    noise = random.gumbel(size=(scenario.passes, shape.layers, rows, shape.experts))
    score = np.log(weight)[None, :, None, :] + noise
    routed = np.argsort(-score, axis=-1)[..., : shape.top_k].astype(np.int32)
    again = random.random((scenario.passes, shape.layers, rows, 1)) < scenario.reuse
    for number in range(1, scenario.passes):
        routed[number] = np.where(again[number], routed[number - 1], routed[number])
    return routed


def random_predictions(scenario: Scenario, routed: np.ndarray) -> np.ndarray:
    """int32 like `routed`: what earlier layers predict for each row."""
    random = np.random.default_rng((scenario.seed, 1))
    order = random.random((*routed.shape[:-1], scenario.shape.experts)).argsort(axis=-1)
    right = random.random((*routed.shape[:-1], 1)) < scenario.accuracy
    return np.where(right, routed, order[..., : scenario.shape.top_k]).astype(np.int32)


def drive(policy: Any, scenario: Scenario) -> list[Decision]:
    """Run `policy` through the scenario; every plan is validated by the Session."""
    shape = scenario.shape
    session = Session(policy, shape, plain_costs(), CountedLink(scenario.landing))
    routed = random_rows(scenario, shape.gamma_max + 1)
    predicted = random_predictions(scenario, routed)
    if getattr(policy, "clairvoyant", False):
        counts = np.zeros((scenario.passes, shape.layers, shape.experts), np.uint8)
        for index in np.ndindex(routed.shape):
            counts[index[0], index[1], routed[index]] += 1
        policy.foresee(Future(counts))
    weights = np.full((shape.gamma_max + 1, shape.top_k), 1.0 / shape.top_k)
    decisions = []
    for number in range(scenario.passes):
        if number % 5 == 0:
            session.start_request(np.arange(4))
        gamma = session.start_pass(number)
        decisions += [session.draft_step(step, step) for step in range(gamma)]
        for layer in range(shape.layers):
            ahead = [
                predicted[number, min(layer + step, shape.layers - 1), : gamma + 1]
                for step in (1, 2, 3)
            ]
            routing = Routing(
                layer, routed[number, layer, : gamma + 1], weights[: gamma + 1], np.stack(ahead)
            )
            decisions.append(session.enter_layer(routing))
            decisions.append(session.leave_layer(layer))
        session.end_pass(min(gamma, number % 3))
    return decisions


def same(one: Decision, other: Decision) -> bool:
    """True if two decisions saw the same pool and chose the same."""
    return all(
        np.array_equal(np.asarray(mine), np.asarray(theirs))
        for mine, theirs in zip(one, other, strict=True)
    )


def check_policy(factory: Callable[[], Any]) -> int:
    """Raise AssertionError (or session.IllegalPlan) at the first broken rule; returns the
    decisions checked."""
    checked = 0
    for scenario in SCENARIOS:
        policy = factory()
        assert policy.name and isinstance(policy.name, str), "a policy needs a name"
        assert set(policy.needs) <= set(NEEDS), f"needs: {set(policy.needs) - set(NEEDS)} unknown"
        given = policy.parameters()
        first = drive(policy, scenario)
        assert policy.parameters() == given, "parameters must stay as given; keep state elsewhere"
        again = drive(policy, scenario)
        fresh = drive(factory(), scenario)
        assert len(first) == len(again) == len(fresh), (
            "the number of decisions differs between runs"
        )
        for place, decision in enumerate(first):
            assert same(decision, again[place]), (
                f"{policy.name}: decision {place} differs after reset: reset must forget everything"
            )
            assert same(decision, fresh[place]), (
                f"{policy.name}: decision {place} differs between two fresh objects: "
                "no clock, no I/O, no global random state"
            )
        checked += len(first)
    return checked
