"""What one pass says about one expert: its activation count, the bare bit, or the router mass."""

from __future__ import annotations

from policies import kinds
from policies.compile import inlined


@inlined
def signal_value(kind, observation, expert):
    """The signal of `expert` (number within the layer) in this pass; 0 when it is not active."""
    count = observation.counts[expert]
    if count == 0:
        return 0.0
    if kind == kinds.BIT:
        return 1.0
    if kind == kinds.MASS:
        return observation.mass[expert]
    return float(count)
