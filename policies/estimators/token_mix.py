"""Expected activations in a layer's next run, from decayed rates and from the drafted tokens.

A token tends to choose the experts that it chose before. `memory` holds each expert's decayed rate
per row; the table of tokens (hashed to a fixed number of buckets, learned while running) the share
of a token's past rows that chose each expert. Before a pass, every row counts with the rate; each
token that becomes known replaces `token_weight` of its row by its shares. `patience` further passes
count with the rate alone, for what stays useful.
"""

from __future__ import annotations

from policies.compile import inner
from policies.state import ESTIMATOR, GAMMA, PASS

DECAY = 0
TOKEN_WEIGHT = 1
LEARNING = 2
BUCKETS = 3
PATIENCE = 4


@inner
def observe_rates(state, observation, layer):
    """Update the rates of `layer` from this pass and set its utilities for the next one, of which
    no token is known."""
    rates, utilities, counts = state.memory, state.utility, observation.counts
    decay = state.parameters[ESTIMATOR, DECAY]
    # The first passes are averaged evenly, or the rates would start far too low.
    step = max(1.0 - decay, 1.0 / (state.clock[PASS] + 1.0))
    rows = float(observation.size[1])
    expected = (1.0 + state.clock[GAMMA]) * (1.0 + state.parameters[ESTIMATOR, PATIENCE])
    for expert in range(rates.shape[1]):
        rate = rates[layer, expert]
        rate += step * (counts[expert] / rows - rate)
        rates[layer, expert] = rate
        utilities[layer, expert] = expected * rate


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
