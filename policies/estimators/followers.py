"""Which experts of a layer follow which: the share of an expert's recent uses after which a pass
used another one of its layer, counted while running."""

from __future__ import annotations

from policies.compile import inner
from policies.state import PASS

PRIOR = 4.0  # uses that a pair is taken to have had without a tie
RECENT = 3  # passes whose experts say something, each half of what the later one says
HALF = 0.5


@inner
def learn_followers(state, observation, layer):
    """Count the pairs (expert of the passes before, expert of this one). Stamps are still those of
    the passes before."""
    stamps, pairs, active = state.stamp, state.follow, observation.active
    followed, uses = state.followed, state.all_uses
    before = state.clock[PASS] - 1
    total = observation.size[0]
    for place in range(total):
        uses[layer, active[place]] += 1.0
    for expert in range(stamps.shape[1]):
        age = before - stamps[layer, expert]
        if stamps[layer, expert] < 0 or age >= RECENT:
            continue
        weight = HALF**age
        followed[layer, expert] += weight
        for place in range(total):
            pairs[layer, expert, active[place]] += weight


@inner
def expect_followers(state, observation, layer, expected):
    """Fill `expected` float64 [experts]: mean share over the recent experts, this pass's included,
    less the share of all passes."""
    pairs, followed, uses = state.follow, state.followed, state.all_uses
    stamps, counts = state.stamp, observation.counts
    now = state.clock[PASS]
    known = total = 0.0
    expected[:] = 0.0
    for one in range(stamps.shape[1]):
        age = now - stamps[layer, one]
        if counts[one] > 0:
            age = 0
        elif stamps[layer, one] < 0 or age >= RECENT:
            continue
        weight = HALF**age
        total += weight
        weight /= followed[layer, one] + PRIOR
        known += followed[layer, one] * weight
        for expert in range(expected.shape[0]):
            expected[expert] += pairs[layer, one, expert] * weight
    for expert in range(expected.shape[0]):
        rate = uses[layer, expert] / (now + 1)
        expected[expert] = (expected[expert] - known * rate) / max(total, 1.0)
