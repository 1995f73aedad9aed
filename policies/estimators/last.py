"""The signal of the last pass alone."""

from __future__ import annotations

from policies.compile import inner
from policies.signals.signal import signal_of


@inner
def observe_last(program, state, observation, layer):
    """utility = signal, for every expert of the layer."""
    utilities, counts, mass = state.utility, observation.counts, observation.mass
    kind = program.signal
    for expert in range(counts.shape[0]):
        utilities[layer, expert] = signal_of(kind, counts[expert], mass[expert])
