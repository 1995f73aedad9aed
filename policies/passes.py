"""What a composed policy does between layers: where a request begins, at both ends of a pass, and
when a drafted token becomes known."""

from __future__ import annotations

from policies import kinds
from policies.compile import inner
from policies.estimators.inertia import calibrate_boundaries
from policies.estimators.matches import carry_likeness
from policies.estimators.request_matrix import keep_matrix, match_matrix
from policies.estimators.reuse import solve_weights
from policies.estimators.token_shares import expect_token
from policies.quotas.miss_curves import divide_by_curves
from policies.state import (
    ACCUMULATED_NS,
    BEFORE,
    GAMMA,
    LAYER,
    PASS,
    PASS_NS,
    REQUEST_PASSES,
    REQUESTS,
    TOKENS,
)
from policies.windows.window import choose_window, observe_window


@inner
def start_request(program, state):
    """A request begins. Slots and state survive; only a request's own matrix starts anew."""
    if program.estimator == kinds.REQUEST_MATRIX:
        keep_matrix(state)
    elif program.estimator == kinds.REUSE:
        state.request_uses[:] = 0
        state.likeness[:] = 0.0
    state.clock[BEFORE] = -1
    state.clock[REQUEST_PASSES] = 0
    state.clock[REQUESTS] += 1


@inner
def start_pass(program, state, costs, gamma_max, last_token):
    """Begin a pass after the committed token `last_token` (-1: unknown); returns gamma."""
    clock = state.clock
    if clock[PASS] >= 0:
        clock[PASS_NS] = clock[ACCUMULATED_NS]
    clock[PASS] += 1
    clock[REQUEST_PASSES] += 1
    clock[LAYER] = -1
    if program.quota == kinds.MISS_CURVES:
        divide_by_curves(state)
    if program.estimator == kinds.REQUEST_MATRIX:
        match_matrix(state)
    elif program.estimator == kinds.REUSE:
        solve_weights(state)
        carry_likeness(state)
    gamma = choose_window(program, state, costs, gamma_max)
    clock[GAMMA] = gamma
    clock[ACCUMULATED_NS] = costs.pass_ns + gamma * costs.draft_step_ns
    if program.estimator == kinds.INERTIA:
        calibrate_boundaries(state, costs)
    clock[TOKENS] = 0
    note_token(program, state, last_token)
    return gamma


@inner
def note_token(program, state, token):
    """The next token of this pass is known: the last committed one, then each drafted one. To be
    called before the decision of its draft step, if the policy needs draft_tokens."""
    if program.estimator != kinds.REUSE or state.clock[TOKENS] >= state.tokens.shape[0]:
        return
    state.tokens[state.clock[TOKENS]] = token
    state.clock[TOKENS] += 1
    expect_token(state, token)


@inner
def end_pass(program, state, accepted):
    """The pass committed `accepted` of its drafted tokens and one more."""
    if accepted < state.clock[TOKENS]:
        state.clock[BEFORE] = state.tokens[accepted]
    else:
        state.clock[BEFORE] = -1
    observe_window(program, state, accepted)
