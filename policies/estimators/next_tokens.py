"""What the tokens of this pass say about the next one: which experts the token after a token tends
to choose. Repeated text repeats its routing, and this is known a whole pass ahead."""

from __future__ import annotations

from policies.compile import inner
from policies.estimators.token_shares import LEARNING, learn_row
from policies.state import BEFORE, ESTIMATOR, TOKENS


@inner
def expect_next_tokens(state, layer, expected):
    """Add to `expected` float64 [experts] the mean over the known tokens of this pass: shares of
    what followed the token, less the rates per row."""
    shares, remembered, tokens = state.next_share, state.next_expert, state.tokens
    rates = state.memory
    known = state.clock[TOKENS]
    for place in range(known):
        if tokens[place] < 0:
            continue
        bucket = tokens[place] % remembered.shape[0]
        if remembered[bucket, layer, 0] < 0:
            continue
        for expert in range(expected.shape[0]):
            expected[expert] -= rates[layer, expert] / known
        for way in range(remembered.shape[2]):
            expert = remembered[bucket, layer, way]
            if expert >= 0:
                expected[expert] += shares[bucket, layer, way] / known


@inner
def learn_next_tokens(state, experts, layer):
    """Row 0 of this pass (int32 [rows, top_k]) follows the last committed row of the pass before,
    row j follows row j - 1."""
    step = state.parameters[ESTIMATOR, LEARNING]
    token = state.clock[BEFORE]
    for row in range(min(experts.shape[0], state.tokens.shape[0])):
        if token >= 0:
            bucket = token % state.next_expert.shape[0]
            learn_row(state.next_share[bucket, layer], state.next_expert[bucket, layer],
                      experts[row], step, 0.5)  # fmt: skip
        token = state.tokens[row]
