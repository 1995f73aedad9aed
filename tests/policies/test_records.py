"""Decisions through packed records are those through the records one by one, on the same arrays."""

from typing import Any

import numpy as np
import pytest

from policies import entries, records
from policies.api import Shape
from policies.conformance import CountedLink, plain_costs
from policies.ledger import OK
from policies.session import NO_PREDICTION, NO_WEIGHTS, Session
from policies.zoo import ZOO

SHAPE = Shape(layers=3, experts=8, top_k=2, slots=6, staging=2, gamma_max=3, launch_early=False)
NOTHING = np.zeros(0, np.int64)


def fresh(name: str) -> tuple[Session, tuple[Any, ...]]:
    session = Session(ZOO[name](), SHAPE, plain_costs(), CountedLink(1))
    policy = session.policy
    session.start_request(np.zeros(0, np.int32))
    session.start_pass(-1)
    return session, (
        policy.program_, policy.state_, session.costs, session.ledger, session.observation,
        session.plan,
    )  # fmt: skip


def arrays(session: Session) -> dict[str, np.ndarray]:
    """Copies of all arrays that a decision may write."""
    groups = (session.policy.state_, session.ledger, session.observation, session.plan)
    return {
        f"{type(group).__name__}.{name}": getattr(group, name).copy()
        for group in groups
        for name in group._fields
    }


@pytest.mark.parametrize("name", ["spac", "lru_cpu", "ours"])
def test_packed_and_single_records_decide_alike(name: str) -> None:
    random = np.random.default_rng(5)
    packed, pack = fresh(name)
    single, parts = fresh(name)
    held = records.Records(*pack)
    for step in range(3):
        ours = records.draft_step(held, 1000, NOTHING, NOTHING, 0)
        theirs = entries.draft_step(*parts, 1000, NOTHING, NOTHING, 0)
        assert ours == theirs and ours[0] == OK, step
    for layer in range(SHAPE.layers):
        rows = np.stack([random.permutation(8)[:2] for _ in range(4)]).astype(np.int32)
        arguments = (layer, 2, False, rows, NO_WEIGHTS, NO_PREDICTION, NOTHING, NOTHING, 0)
        ours = records.enter_layer(held, *arguments)
        theirs = entries.enter_layer(*parts, *arguments)
        assert ours == theirs and ours[0] == OK
        assert records.leave_layer(held, layer, NOTHING, NOTHING, 0) == entries.leave_layer(
            *parts, layer, NOTHING, NOTHING, 0
        )
    one, other = arrays(packed), arrays(single)
    assert one["Observation.counts"].sum() == 8, "a decision through the pack writes our arrays"
    for key, values in one.items():
        np.testing.assert_array_equal(values, other[key], err_msg=key)
