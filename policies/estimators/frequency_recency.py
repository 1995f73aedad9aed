"""LFRU: an expert's activations so far, divided by its age in passes (least of both goes first)."""

from __future__ import annotations

from policies.compile import inner
from policies.signals.signal import signal_value
from policies.state import PASS


@inner
def observe_frequency_recency(program, state, observation, layer):
    """utility = uses / (1 + passes since the last use); `memory` holds the uses. Call before the
    stamps change."""
    utilities, uses, stamps = state.utility, state.memory, state.stamp
    now = state.clock[PASS]
    for expert in range(utilities.shape[1]):
        signal = signal_value(program.signal, observation, expert)
        uses[layer, expert] += signal
        age = 0 if signal > 0.0 else now - stamps[layer, expert]
        utilities[layer, expert] = uses[layer, expert] / (1.0 + age)
