"""Recency: utility is the pass of the last activation (LRU order, residents of the pass at hand
first)."""

from __future__ import annotations

from policies.compile import inner
from policies.state import PASS


@inner
def observe_recency(state, observation, layer):
    """Active experts get the number of this pass."""
    utilities, active = state.utility, observation.active
    now = float(state.clock[PASS])
    for place in range(observation.size[0]):
        utilities[layer, active[place]] = now
