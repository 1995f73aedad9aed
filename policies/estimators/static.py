"""Static profile: activation counts of the first passes, then frozen."""

from __future__ import annotations

from policies.compile import inner
from policies.signals.signal import signal_value
from policies.state import ESTIMATOR, PASS

PROFILE_PASSES = 0


@inner
def observe_static(program, state, observation, layer):
    """Count while profiling; afterwards change nothing."""
    if state.clock[PASS] >= state.parameters[ESTIMATOR, PROFILE_PASSES]:
        return
    for place in range(observation.size[0]):
        expert = observation.active[place]
        state.utility[layer, expert] += signal_value(program.signal, observation, expert)
