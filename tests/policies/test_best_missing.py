"""What the ledger keeps of utilities is never stale: whoever changes utilities bumps their version,
and every fill voids it."""

import numpy as np
import pytest

from policies.api import Routing, Shape
from policies.conformance import CountedLink, plain_costs
from policies.ledger import NOWHERE, READY
from policies.session import Session
from policies.zoo import ZOO

SHAPE = Shape(layers=4, experts=12, top_k=3, slots=16, staging=2, gamma_max=3, launch_early=False)


def check(session: Session) -> int:
    """Compare every layer whose value counts as known with a plain look; returns how many do."""
    ledger, state = session.ledger, session.policy.state_
    slots = ledger.expert_slot.reshape(SHAPE.layers, SHAPE.experts)
    known = 0
    for layer in range(SHAPE.layers):
        if ledger.lowest_version[layer] == state.utility_version[layer]:
            ready = [
                (state.utility[layer, expert], state.stamp[layer, expert], slot)
                for expert, slot in enumerate(slots[layer])
                if slot != NOWHERE and ledger.slot_state[slot] == READY
            ]
            lowest = min(ready, default=(np.inf, 0, NOWHERE))
            assert (ledger.lowest_utility[layer], ledger.lowest_slot[layer]) == lowest[::2], layer
        if ledger.missing_version[layer] != state.utility_version[layer]:
            continue
        known += 1
        missing = state.utility[layer][slots[layer] == NOWHERE]
        assert ledger.best_missing[layer] == missing.max(initial=-np.inf), layer
    return known


def play(session: Session, random: np.random.Generator, passes: int) -> int:
    """Random passes; the values found known after each decision."""
    known = 0
    for number in range(passes):
        if number % 5 == 0:
            session.start_request(np.zeros(0, np.int32))
        gamma = session.start_pass(int(random.integers(50)))
        known += check(session)
        for step in range(gamma):
            session.draft_step(step, int(random.integers(50)))
            known += check(session)
        for layer in range(SHAPE.layers):
            rows = [random.permutation(6)[:3] + 3 * (number % 3) for _ in range(gamma + 1)]
            experts = np.array(rows, np.int32)
            predicted = np.stack([experts, experts, experts])
            weights = np.full(experts.shape, 1 / 3)
            session.enter_layer(Routing(layer, experts, weights, predicted))
            known += check(session)
            session.leave_layer(layer)
            known += check(session)
        session.end_pass(int(random.integers(gamma + 1)))
        known += check(session)
    return known


@pytest.mark.parametrize("name", [name for name in ZOO if not ZOO[name]().clairvoyant])
def test_known_values_are_right(name: str) -> None:
    policy = ZOO[name]()
    session = Session(policy, SHAPE, plain_costs(), CountedLink(1))
    known = play(session, np.random.default_rng(3), 25)
    if name in ("spac", "static_hot"):
        assert known > 100, "the mover by utility uses them"


def test_a_changed_utility_without_its_version_is_seen_by_this_test() -> None:
    session = Session(ZOO["spac"](), SHAPE, plain_costs(), CountedLink(1))
    assert play(session, np.random.default_rng(3), 10) > 0
    state, ledger = session.policy.state_, session.ledger
    layer = int(np.flatnonzero(ledger.missing_version == state.utility_version)[0])
    state.utility[layer] += 1.0
    with pytest.raises(AssertionError):
        check(session)
