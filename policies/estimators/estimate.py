"""Dispatch of the estimator: called once per layer and pass, after routing is known and before the
layer is balanced."""

from __future__ import annotations

from policies import kinds
from policies.compile import inner
from policies.estimators.average import observe_average
from policies.estimators.decayed import observe_decayed
from policies.estimators.foresight import (
    observe_next_use,
    observe_upcoming,
    observe_uses_to_come,
)
from policies.estimators.frequency_recency import observe_frequency_recency
from policies.estimators.inertia import observe_inertia
from policies.estimators.last import observe_last
from policies.estimators.recency import observe_recency
from policies.estimators.request_matrix import observe_matrix
from policies.estimators.reuse import observe_reuse
from policies.estimators.static import observe_static
from policies.estimators.workload import observe_workload
from policies.quotas.miss_curves import observe_depths
from policies.state import PASS


@inner
def estimate(program, state, observation, layer):
    """Update the utilities of `layer`, their version, and the stamps of its active experts."""
    kind = program.estimator
    if program.quota == kinds.MISS_CURVES:
        observe_depths(state, observation, layer)
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
        observe_last(program, state, observation, layer)
    elif kind == kinds.FREQUENCY_RECENCY:
        observe_frequency_recency(program, state, observation, layer)
    elif kind == kinds.AVERAGE:
        observe_average(program, state, observation, layer)
    elif kind == kinds.WORKLOAD:
        observe_workload(program, state, observation, layer)
    elif kind == kinds.REQUEST_MATRIX:
        observe_matrix(program, state, observation, layer)
    elif kind == kinds.REUSE:
        observe_reuse(state, observation, layer)
    elif kind == kinds.USES_TO_COME:
        observe_uses_to_come(state, layer)
    state.utility_version[layer] += 1
    stamps, active, now = state.stamp, observation.active, state.clock[PASS]
    for place in range(observation.size[0]):
        stamps[layer, active[place]] = now
