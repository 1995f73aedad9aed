"""Our estimator: what its features are, and that its values are the discounted uses to come."""

import numpy as np
import pytest

from policies.api import Shape
from policies.compile import python_kernel
from policies.errors import UserError
from policies.estimators.next_tokens import learn_next_tokens
from policies.estimators.reuse import FOLLOWERS, LONG, NOW, REQUEST, SHORT, TOKENS
from policies.estimators.token_shares import learn_tokens
from policies.parts import Last, Reuse
from policies.state import BEFORE
from tests.policies.estimator_runs import policy, see, show

learn_tokens = python_kernel(learn_tokens)
learn_next_tokens = python_kernel(learn_next_tokens)


def reuse_policy(**changes):
    given = {"decay": 0.5, "token_weight": 1.0, "learning": 0.5, "buckets": 8, "discount": 0.5}
    return policy(Reuse(**(given | changes)))


def learn(made, tokens, experts, layer=0):
    """One pass: `tokens` known while drafting, row j of the routing goes to experts[j]."""
    made.start_pass(tokens[0])
    for token in tokens[1:]:
        made.note_token(token)
    before = made.state_.utility[layer].copy()
    rows = np.array(experts, np.int32)[:, None]
    see(made, np.bincount(experts, minlength=4), layer)
    learn_tokens(made.state_, rows, layer)
    learn_next_tokens(made.state_, rows, layer)
    return before


def test_an_expert_of_every_pass_is_worth_all_the_discounted_future():
    made = reuse_policy(discount=0.8)
    for _ in range(400):
        utilities = show(made, [1, 0, 0, 0])
    assert utilities[0] == pytest.approx(1 / (1 - 0.8), rel=0.05)
    assert max(utilities[1:]) < 0.1


def test_values_follow_the_trace_and_not_recency():
    """Used in every second pass: what was just used is not needed next."""
    made = reuse_policy(discount=0.5)
    for number in range(600):
        utilities = show(made, [1, 0, 0, 0] if number % 2 else [0, 1, 0, 0])
    # v(just used) = d v(due), v(due) = 1 + d v(just used)
    assert utilities[0] == pytest.approx(0.5 / (1 - 0.25), rel=0.1)
    assert utilities[1] == pytest.approx(1 / (1 - 0.25), rel=0.1)


def feature(made, entry, layer=0):
    return made.state_.features[layer, :, entry].tolist()


def test_rates_have_a_short_memory_and_a_long_one():
    made = reuse_policy()
    show(made, [1, 0, 0, 0])
    assert feature(made, SHORT) == feature(made, LONG) == feature(made, NOW) == [1, 0, 0, 0]
    for _ in range(99):
        show(made, [0, 1, 0, 0])
    assert feature(made, SHORT)[0] < 1e-6
    assert feature(made, LONG)[0] == pytest.approx(0.01), "one of a hundred passes"
    assert feature(made, NOW) == [0, 1, 0, 0]


def test_a_request_has_a_rate_of_its_own():
    made = reuse_policy()
    for _ in range(6):
        show(made, [1, 0, 0, 0])
    assert feature(made, REQUEST) == [6 / (6 + 4), 0, 0, 0]
    made.start_request(np.zeros(0, np.int32))
    show(made, [0, 0, 1, 0])
    assert feature(made, REQUEST) == [0, 0, 1 / (1 + 4), 0]


def test_longer_drafts_do_not_look_like_more_use():
    """Two experts of a pass of two rows count half each; the utilities are uses all the same."""
    made = reuse_policy(discount=0.5)
    for _ in range(200):
        utilities = show(made, [1, 1, 0, 0])
    assert feature(made, NOW) == [0.5, 0.5, 0, 0]
    assert utilities[:2] == pytest.approx([2, 2], rel=0.05)


def test_what_follows_an_expert_is_worth_more_after_it():
    """0 is always followed by 1, 2 by 3, in random order: rates are alike, followers are not."""
    made = reuse_policy(token_weight=0.0)
    for first in np.random.default_rng(0).integers(0, 2, 300):
        for expert in (2 * first, 2 * first + 1):
            utilities = show(made, np.eye(4, dtype=int)[expert])
    assert show(made, [1, 0, 0, 0])[1] > 0.8, utilities
    assert feature(made, FOLLOWERS)[1] > 0.1 > 0 > feature(made, FOLLOWERS)[3]
    assert show(made, [0, 1, 0, 0])[1] < 0.6


def test_the_token_after_a_token_is_expected():
    """Token 5 is followed by a row that uses expert 3: known when 5 is the last one."""
    made = reuse_policy()
    for token, expert in ((5, 1), (6, 3), (7, 0)) * 3:
        learn(made, [token], [expert])
        made.end_pass(0)
    learn(made, [5], [1])
    assert feature(made, TOKENS)[3] == pytest.approx(1.0, abs=0.4)
    assert feature(made, TOKENS)[1] < 0
    made.start_pass(2)  # never seen
    see(made, [1, 0, 0, 0])
    assert feature(made, TOKENS) == [0, 0, 0, 0]


def test_only_committed_rows_come_before_the_next_pass():
    made = reuse_policy()
    learn(made, [5, 6, 7], [1, 2, 3])
    made.end_pass(1)  # 6 accepted, 7 refused
    assert made.state_.clock[BEFORE] == 6
    made.start_request(np.zeros(0, np.int32))
    assert made.state_.clock[BEFORE] == -1, "another text"


def test_without_tokens_nothing_is_expected_of_them():
    made = reuse_policy(token_weight=0.0)
    for _ in range(5):
        learn(made, [5], [1])
        made.end_pass(0)
    assert feature(made, TOKENS) == [0, 0, 0, 0]
    assert np.isfinite(made.state_.weights).all() and made.state_.weights[TOKENS] == 0


def test_values_stay_finite_where_one_expert_is_all_there_is():
    shape = Shape(1, 1, 1, 1, 0, 0, False)
    made = policy(Reuse(discount=0.7), shape=shape)
    for _ in range(3000):
        value = show(made, [1])[0]
    assert value == pytest.approx(1 / 0.3, rel=0.05)


def test_a_known_token_counts_by_what_it_activated_before():
    made = reuse_policy()
    learn(made, [5, 6], [1, 2])
    rest = np.array(made.state_.utility[0])
    assert made.state_.memory[0].tolist() == [0, 0.5, 0.5, 0]
    made.start_pass(5)
    # Its share of expert 1 (all of its past rows) replaces the rate of one row.
    assert made.state_.utility[0] - rest == pytest.approx([0, 0.5, -0.5, 0])
    made.note_token(7)
    assert made.state_.utility[0] - rest == pytest.approx([0, 0.5, -0.5, 0]), "never seen"
    made.note_token(6)
    assert np.allclose(made.state_.utility[0], rest)


def test_shares_follow_a_token_that_changes_its_experts():
    made = reuse_policy()
    learn(made, [5], [1])
    learn(made, [5], [3])
    remembered = made.state_.token_expert[5, 0].tolist()
    assert made.state_.token_share[5, 0, remembered.index(1)] == 0.5
    assert made.state_.token_share[5, 0, remembered.index(3)] == 0.5
    learn(made, [5], [0])  # two ways: the smallest share makes room
    assert 0 in made.state_.token_expert[5, 0].tolist()


def test_tokens_are_a_wish_that_can_be_withheld():
    made = policy(Reuse())
    assert made.needs == made.wishes == {"draft_tokens"}
    made.do_without(frozenset({"draft_tokens"}))
    assert made.needs == frozenset()
    assert policy(Reuse(token_weight=0.0)).needs == frozenset()
    assert policy(Last()).wishes == frozenset()
    with pytest.raises(UserError, match="cannot do without \\['router_mass'\\]"):
        policy(Last(), signal="mass").do_without(frozenset({"router_mass"}))
