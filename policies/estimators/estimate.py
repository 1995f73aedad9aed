"""Dispatch of the estimator: called once per layer and pass, after routing is known and before the
layer is balanced."""

from __future__ import annotations

from policies import kinds
from policies.compile import kernel
from policies.estimators.decayed import observe_decayed
from policies.estimators.foresight import observe_next_use, observe_upcoming
from policies.estimators.inertia import observe_inertia
from policies.estimators.recency import observe_recency
from policies.estimators.static import observe_static
from policies.signals.signal import signal_value
from policies.state import PASS


@kernel
def estimate(program, state, observation, layer):
    """Update the utilities of `layer` and the stamps of its active experts."""
    kind = program.estimator
    if kind == kinds.RECENCY:
        observe_recency(state, observation, layer)
    elif kind == kinds.DECAYED:
        observe_decayed(program, state, observation, layer)
    elif kind == kinds.INERTIA:
        observe_inertia(program, state, observation, layer)
    elif kind == kinds.STATIC:
        observe_static(program, state, observation, layer)
    elif kind == kinds.NEXT_USE:
        observe_next_use(state, layer)
    elif kind == kinds.UPCOMING:
        observe_upcoming(state, layer)
    elif kind == kinds.LAST:
        for expert in range(observation.counts.shape[0]):
            state.utility[layer, expert] = signal_value(program.signal, observation, expert)
    stamps, active, now = state.stamp, observation.active, state.clock[PASS]
    for place in range(observation.size[0]):
        stamps[layer, active[place]] = now
