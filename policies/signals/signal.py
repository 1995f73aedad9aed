"""What one pass says about one expert: its activation count, the bare bit, or the router mass."""

from __future__ import annotations

from policies import kinds
from policies.compile import inlined


@inlined
def signal_of(kind, count, mass):
    """The signal of an expert with `count` rows and router `mass` in this pass; 0 without rows."""
    if kind == kinds.BIT:
        return 1.0 if count > 0 else 0.0
    if kind == kinds.MASS:
        return mass if count > 0 else 0.0
    return float(count)


@inlined
def signal_value(kind, observation, expert):
    """The signal of `expert` (number within the layer); loops take signal_of, without records."""
    return signal_of(kind, observation.counts[expert], observation.mass[expert])
