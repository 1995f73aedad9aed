"""Expected uses of an expert in the passes to come, learned while running.

What is seen of an expert in a pass is a row of eight numbers: how often passes used it, over a
short and a long memory and in this request; whether this one did; what its tokens, the experts of
its layer and past passes like it say about the next (policies.estimators.next_tokens, .followers,
.matches); and 1. Its value is their weighted sum. The weights, the same for all experts, solve

    value(before) = used + discount * value(after)

in the least squares of temporal differences (LSTD: Bradtke and Barto 1996): the discounted number
of uses, with no time scale fitted to a trace. Drafted tokens correct the value for the coming pass
(policies.estimators.token_shares).
"""

from __future__ import annotations

from policies.compile import inner, kernel
from policies.estimators.followers import expect_followers, learn_followers
from policies.estimators.matches import compare_layer, expect_matches
from policies.estimators.next_tokens import expect_next_tokens
from policies.state import ESTIMATOR, PASS, REQUEST_PASSES, SPREAD, TOP_K

DECAY = 0
TOKEN_WEIGHT = 1
DISCOUNT = 4
# Entries of `features`.
SHORT = 0
LONG = 1
NOW = 2
REQUEST = 3
TOKENS = 4
FOLLOWERS = 5
MATCHES = 6
ONE = 7
FEATURES = 8
SHORT_STEP = 0.2
LONG_STEP = 0.01
REQUEST_PRIOR = 4.0  # passes without a use before the first of a request
PRIOR = 1.0  # squared features that the first weights count as
MEMORY = 0.999  # of the sums, per pass
SPREAD_STEP = 0.02
LEARNERS = 4  # one of so many experts teaches the weights in a pass
HASH = 2654435761  # Knuth's: which one is no rhythm that routing could have too


@kernel(allocates=False)
def start_reuse(state):
    """Before anything is seen, an expert is used as often as over its long memory, for ever."""
    state.weights[LONG] = 1.0 / max(1.0 - state.parameters[ESTIMATOR, DISCOUNT], 0.01)


@inner
def observe_reuse(state, observation, layer):
    """Learn from this pass of `layer`, update its features and set its utilities from the next pass
    on."""
    features, utilities, counts = state.features, state.utility, observation.counts
    weights, uses = state.weights, state.request_uses
    now = state.clock[PASS]
    _observe_rates(state, observation, layer)
    followers, tokens, matches = state.expected[0], state.expected[1], state.expected[2]
    learn_followers(state, observation, layer)
    expect_followers(state, observation, layer, followers)
    compare_layer(state, observation, layer)
    expect_matches(state, layer, matches)
    tokens[:] = 0.0
    if state.parameters[ESTIMATOR, TOKEN_WEIGHT] > 0.0:
        expect_next_tokens(state, layer, tokens)
    short_step = max(SHORT_STEP, 1.0 / (now + 1.0))
    long_step = max(LONG_STEP, 1.0 / (now + 1.0))
    passes = state.clock[REQUEST_PASSES] + REQUEST_PRIOR
    after = state.after
    turn = (now * HASH % 4294967296) >> 16
    # Longer drafts use more experts: shares of the pass stay the same.
    spread = observation.size[0] / state.clock[TOP_K]
    mean = state.measured[SPREAD]
    if mean == 0.0:
        mean = spread
    mean += SPREAD_STEP * (spread - mean)
    state.measured[SPREAD] = mean
    for expert in range(counts.shape[0]):
        used = 1.0 / spread if counts[expert] > 0 else 0.0
        before = features[layer, expert]
        uses[layer, expert] += used
        after[SHORT] = before[SHORT] + short_step * (used - before[SHORT])
        after[LONG] = before[LONG] + long_step * (used - before[LONG])
        after[NOW] = used
        after[REQUEST] = uses[layer, expert] / passes
        after[TOKENS] = tokens[expert]
        after[FOLLOWERS] = followers[expert]
        after[MATCHES] = matches[expert]
        after[ONE] = 1.0
        if now > 0 and (expert + turn) % LEARNERS == 0:
            _learn(state, before, after, used)
        value = 0.0
        for entry in range(FEATURES):
            before[entry] = after[entry]
            value += weights[entry] * after[entry]
        utilities[layer, expert] = max(value, 0.0) * mean


@inner
def _observe_rates(state, observation, layer):
    """Decayed rate per row of every expert, which drafted tokens are held against."""
    rates, counts = state.memory, observation.counts
    step = max(1.0 - state.parameters[ESTIMATOR, DECAY], 1.0 / (state.clock[PASS] + 1.0))
    rows = float(observation.size[1])
    for expert in range(counts.shape[0]):
        rates[layer, expert] += step * (counts[expert] / rows - rates[layer, expert])


@inner
def _learn(state, before, after, used):
    """Add one step of an expert to the normal equations: before' (before - discount after) weights
    = before' used."""
    sums = state.sums
    discount = state.parameters[ESTIMATOR, DISCOUNT]
    for row in range(FEATURES):
        seen = before[row]
        if seen == 0.0:
            continue
        for column in range(FEATURES):
            sums[row, column] += seen * (before[column] - discount * after[column])
        sums[row, FEATURES] += seen * used


@inner
def solve_weights(state):
    """Solve the normal equations, by elimination with pivots, for the pass that begins; equations
    without a solution leave the weights as they are."""
    sums, rows, weights = state.sums, state.equations, state.weights
    first = 1.0 / max(1.0 - state.parameters[ESTIMATOR, DISCOUNT], 0.01)
    for row in range(FEATURES):
        for column in range(FEATURES + 1):
            sums[row, column] *= MEMORY
            rows[row, column] = sums[row, column]
        rows[row, row] += PRIOR
    rows[LONG, FEATURES] += PRIOR * first
    for pivot in range(FEATURES):
        best = pivot
        for row in range(pivot + 1, FEATURES):
            if abs(rows[row, pivot]) > abs(rows[best, pivot]):
                best = row
        if abs(rows[best, pivot]) < 1e-6:
            return
        for column in range(FEATURES + 1):
            held = rows[pivot, column]
            rows[pivot, column] = rows[best, column]
            rows[best, column] = held
        for row in range(FEATURES):
            if row == pivot:
                continue
            factor = rows[row, pivot] / rows[pivot, pivot]
            for column in range(pivot, FEATURES + 1):
                rows[row, column] -= factor * rows[pivot, column]
    for row in range(FEATURES):
        weights[row] = rows[row, FEATURES] / rows[row, row]


@inner
def value_now(state, layer, expert):
    """Value of an expert of a layer that has not run in this pass yet, without its tokens."""
    value = 0.0
    for entry in range(FEATURES):
        value += state.weights[entry] * state.features[layer, expert, entry]
    return max(value, 0.0) * state.measured[SPREAD]
