"""Every miss is streamed: copied, computed and dropped."""

from __future__ import annotations

import numpy as np

from policies import api
from policies.balancers.copied import WAIT, place_residents, place_streamed
from policies.compile import inner


@inner
def place_streaming_misses(ledger, state, observation, plan, layer, staging):
    """Active experts without a slot go through the staging buffers, lowest number first."""
    place_residents(ledger, observation, plan, layer, WAIT)
    for place in range(observation.size[0]):
        expert = observation.active[place]
        if plan.placement[expert] == api.UNUSED:
            place_streamed(ledger, state, plan, layer, np.int64(expert), staging)
