"""What the drafted tokens say about the coming pass: a token tends to choose the experts that it
chose before.

The table of tokens (hashed to a fixed number of buckets, learned while running) holds the share of
a token's past rows that chose each expert. Each token that becomes known before a pass moves
`token_weight` of its row from the experts' decayed rates (`memory`) to its own shares.
"""

from __future__ import annotations

from policies.compile import inner
from policies.state import ESTIMATOR

TOKEN_WEIGHT = 1
LEARNING = 2


@inner
def expect_token(state, token):
    """A token of the coming pass is known: its row counts by what it activated before."""
    if token < 0:
        return
    shares, remembered = state.token_share, state.token_expert
    rates, utilities = state.memory, state.utility
    layers, experts = rates.shape
    weight = state.parameters[ESTIMATOR, TOKEN_WEIGHT]
    bucket = token % remembered.shape[0]
    for layer in range(layers):
        if remembered[bucket, layer, 0] < 0:
            continue
        state.utility_version[layer] += 1
        for expert in range(experts):
            utilities[layer, expert] -= weight * rates[layer, expert]
        for way in range(remembered.shape[2]):
            expert = remembered[bucket, layer, way]
            if expert >= 0:
                utilities[layer, expert] += weight * shares[bucket, layer, way]


@inner
def learn_tokens(state, experts, layer):
    """Update the shares from the rows of this pass (int32 [rows, top_k]); row j belongs to
    tokens[j]."""
    shares, remembered, tokens = state.token_share, state.token_expert, state.tokens
    learning = state.parameters[ESTIMATOR, LEARNING]
    ways = remembered.shape[2]
    for row in range(min(experts.shape[0], tokens.shape[0])):
        if tokens[row] < 0:
            continue
        bucket = tokens[row] % remembered.shape[0]
        step = learning
        if remembered[bucket, layer, 0] < 0:
            step = 1.0
        for way in range(ways):
            shares[bucket, layer, way] *= 1.0 - step
        for column in range(experts.shape[1]):
            expert = experts[row, column]
            place = -1
            least = 0
            for way in range(ways):
                if remembered[bucket, layer, way] == expert:
                    place = way
                    break
                if shares[bucket, layer, way] < shares[bucket, layer, least]:
                    least = way
            if place < 0:
                place = least
                remembered[bucket, layer, place] = expert
                shares[bucket, layer, place] = 0.0
            shares[bucket, layer, place] += step
