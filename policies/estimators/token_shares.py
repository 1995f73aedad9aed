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
    for row in range(min(experts.shape[0], tokens.shape[0])):
        if tokens[row] < 0:
            continue
        bucket = tokens[row] % remembered.shape[0]
        learn_row(shares[bucket, layer], remembered[bucket, layer], experts[row], learning, 1.0)


@inner
def learn_row(shares, remembered, experts, step, first):
    """Move the shares of one token and layer (float32, int16 [ways]) towards `experts` [top_k] by
    `step`, by `first` if nothing was remembered; the smallest share makes room."""
    ways = remembered.shape[0]
    if remembered[0] < 0:
        step = first
    for way in range(ways):
        shares[way] *= 1.0 - step
    for column in range(experts.shape[0]):
        expert = experts[column]
        place = -1
        least = 0
        for way in range(ways):
            if remembered[way] == expert:
                place = way
                break
            if shares[way] < shares[least]:
                least = way
        if place < 0:
            place = least
            remembered[place] = expert
            shares[place] = 0.0
        shares[place] += step
