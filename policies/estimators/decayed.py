"""Decayed counts: utility = decay * utility + signal; decay 1 is LFU, decay 0 is the last pass
alone."""

from __future__ import annotations

from policies.compile import inner
from policies.signals.signal import signal_of
from policies.state import ESTIMATOR

DECAY = 0


@inner
def observe_decayed(program, state, observation, layer):
    """One step of the exponential average for every expert of the layer."""
    utilities, counts, mass = state.utility, observation.counts, observation.mass
    decay, kind = state.parameters[ESTIMATOR, DECAY], program.signal
    for expert in range(counts.shape[0]):
        signal = signal_of(kind, counts[expert], mass[expert])
        utilities[layer, expert] = decay * utilities[layer, expert] + signal
