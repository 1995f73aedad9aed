"""DALI's cache windows (arXiv 2602.03495): utility is the workload of the last complete window, so
that the cache changes only where windows end."""

from __future__ import annotations

from policies.compile import inner
from policies.signals.signal import signal_value
from policies.state import ESTIMATOR, PASS

PASSES = 0


@inner
def observe_workload(program, state, observation, layer):
    """Add to the window at hand (`memory`); at its last pass it becomes the utility."""
    utilities, window = state.utility, state.memory
    passes = max(1, int(state.parameters[ESTIMATOR, PASSES]))
    ends = (state.clock[PASS] + 1) % passes == 0
    for expert in range(utilities.shape[1]):
        window[layer, expert] += signal_value(program.signal, observation, expert)
        if ends:
            utilities[layer, expert] = window[layer, expert]
            window[layer, expert] = 0.0
