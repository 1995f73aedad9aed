"""Which experts of a layer follow which: the share of an expert's uses after which the next pass
used another one of its layer, counted while running."""

from __future__ import annotations

from policies.compile import inner
from policies.state import PASS

PRIOR = 4.0  # uses that a pair is taken to have had without a tie


@inner
def learn_followers(state, observation, layer):
    """Count the pairs (expert of the pass before, expert of this one). Stamps are still those of
    the pass before."""
    stamps, pairs, active = state.stamp, state.follow, observation.active
    before = state.clock[PASS] - 1
    if before < 0:
        return
    for expert in range(stamps.shape[1]):
        if stamps[layer, expert] != before:
            continue
        state.followed[layer, expert] += 1.0
        for place in range(observation.size[0]):
            pairs[layer, expert, active[place]] += 1.0


@inner
def expect_followers(state, observation, layer, expected):
    """Fill `expected` float64 [experts]: mean share over the active experts, less the share of all
    passes."""
    pairs, followed = state.follow, state.followed
    active, total = observation.active, observation.size[0]
    known = 0.0
    expected[:] = 0.0
    for place in range(total):
        one = active[place]
        weight = 1.0 / (followed[layer, one] + PRIOR)
        known += followed[layer, one] * weight
        for expert in range(expected.shape[0]):
            expected[expert] += pairs[layer, one, expert] * weight
    passes = max(state.clock[PASS], 1)
    for expert in range(expected.shape[0]):
        rate = followed[layer, expert] / passes
        expected[expert] = (expected[expert] - known * rate) / max(total, 1)
