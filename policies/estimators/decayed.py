"""Decayed counts: utility = decay * utility + signal; decay 1 is LFU, decay 0 is the last pass
alone."""

from __future__ import annotations

from policies.compile import kernel
from policies.signals.signal import signal_value
from policies.state import ESTIMATOR

DECAY = 0


@kernel
def observe_decayed(program, state, observation, layer):
    """One step of the exponential average for every expert of the layer."""
    decay = state.parameters[ESTIMATOR, DECAY]
    for expert in range(observation.counts.shape[0]):
        state.utility[layer, expert] = decay * state.utility[layer, expert] + signal_value(
            program.signal, observation, expert
        )
