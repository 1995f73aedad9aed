"""Running estimate of how often a drafted token is accepted, by its position in the draft."""

from __future__ import annotations

import numpy as np

from policies.compile import inner
from policies.state import ACCEPTED, TRIED

# Before anything is seen: eight of ten accepted, with the weight of five trials.
PRIOR_RATE = 0.8
PRIOR_TRIALS = 5.0


@inner
def observe_acceptance(state, gamma, accepted, decay):
    """A pass verified `gamma` drafted tokens and accepted the first `accepted`; positions behind
    the first refused one were not tried."""
    window = state.window
    for position in range(1, min(gamma, window.shape[1] - 1) + 1):
        if position > accepted + 1:
            break
        window[TRIED, position] = decay * window[TRIED, position] + 1.0
        success = 1.0 if position <= accepted else 0.0
        window[ACCEPTED, position] = decay * window[ACCEPTED, position] + success


@inner
def fade_acceptance(state, decay):
    """A pass went by: trials count `decay` times as much, so that what was tried long ago becomes
    unsure again."""
    for position in range(state.window.shape[1]):
        state.window[TRIED, position] *= decay
        state.window[ACCEPTED, position] *= decay


@inner
def acceptance_rate(state, position):
    """Probability that the token at `position` (from 1) is accepted, given that those before were.
    Positions never tried take the estimate over all positions."""
    tried = 0.0
    accepted = 0.0
    for other in range(1, state.window.shape[1]):
        tried += state.window[TRIED, other]
        accepted += state.window[ACCEPTED, other]
    overall = (accepted + PRIOR_RATE * PRIOR_TRIALS) / (tried + PRIOR_TRIALS)
    own = state.window[TRIED, position]
    return (state.window[ACCEPTED, position] + overall * PRIOR_TRIALS) / (own + PRIOR_TRIALS)


@inner
def hoped_rate(state, position, hope):
    """The acceptance rate and `hope` standard errors of it: an estimate that a few unlucky trials
    have pressed down is tried again, a sure one is not."""
    rate = acceptance_rate(state, position)
    tried = state.window[TRIED, position] + PRIOR_TRIALS
    return min(rate + hope * np.sqrt(rate * (1.0 - rate) / tried), 1.0)


@inner
def expected_tokens(state, gamma, hope):
    """Tokens that a pass with `gamma` drafted tokens commits: 1 + a1 + a1 a2 + ..., at rates that
    are `hope` standard errors above the estimate."""
    total = 1.0
    reach = 1.0
    for position in range(1, gamma + 1):
        reach *= hoped_rate(state, position, hope)
        total += reach
    return total
