"""The speculative utility estimator of MoE-SpAc (arXiv 2603.09983): levels 0..K that move only on
large changes.

A level rises by one when the activation count exceeds it by `up`, falls by one when it undershoots
it by `down`
(the released code: K = 5, up = 5, down = 1). Calibration of the two boundaries is claimed by the
paper and absent from
its code; ours is the reconstruction: promotions that need more copies than the link can carry
raise `up`, spare link
time lowers it; experts that return soon after their eviction raise `down`, their absence lowers it.
"""

from __future__ import annotations

from policies.compile import inner, kernel
from policies.signals.signal import signal_of
from policies.state import CALIBRATED, DOWN, ESTIMATOR, PASS, PASS_NS, RETURNS, UP, WANTED

LEVELS = 0
UP_START = 1
DOWN_START = 2
CALIBRATE = 3
PERIOD = 4
RETURN_WITHIN = 8


@inner
def observe_inertia(program, state, observation, layer):
    """One transition per expert of the layer; counts include rows that will be rejected, as in the
    released code."""
    levels, evicted, clock = state.utility[layer], state.evicted[layer], state.clock
    counts, mass, kind = observation.counts, observation.mass, program.signal
    top = state.parameters[ESTIMATOR, LEVELS]
    now, up, down = clock[PASS], float(clock[UP]), float(clock[DOWN])
    for expert in range(counts.shape[0]):
        level = levels[expert]
        change = signal_of(kind, counts[expert], mass[expert]) - level
        rises = change >= up
        step = 1.0 if rises else (-1.0 if -change >= down else 0.0)
        levels[expert] = max(0.0, min(top, level + step))
        if rises:
            gone = evicted[expert]
            if gone >= 0 and now - gone <= RETURN_WITHIN:
                clock[RETURNS] += 1
                evicted[expert] = -1


@kernel(allocates=False)
def start_boundaries(state):
    """Thresholds in force at reset: the parameters as given."""
    state.clock[UP] = int(state.parameters[ESTIMATOR, UP_START])
    state.clock[DOWN] = int(state.parameters[ESTIMATOR, DOWN_START])


@inner
def calibrate_boundaries(state, costs):
    """Adaptive boundary calibration, once every PERIOD passes, with a dead band of one half to one
    of the link time."""
    if state.parameters[ESTIMATOR, CALIBRATE] == 0.0:
        return
    passes = state.clock[PASS] - state.clock[CALIBRATED]
    if passes < state.parameters[ESTIMATOR, PERIOD]:
        return
    link_ns = state.clock[WANTED] * costs.copy_ns
    window_ns = state.clock[PASS_NS] * passes
    top = int(state.parameters[ESTIMATOR, LEVELS])
    if link_ns > window_ns:
        state.clock[UP] = min(top + 4, state.clock[UP] + 1)
    elif 2 * link_ns < window_ns:
        state.clock[UP] = max(1, state.clock[UP] - 1)
    if 4 * state.clock[RETURNS] > state.clock[WANTED]:
        state.clock[DOWN] = min(top, state.clock[DOWN] + 1)
    else:
        state.clock[DOWN] = max(1, state.clock[DOWN] - 1)
    state.clock[WANTED] = 0
    state.clock[RETURNS] = 0
    state.clock[CALIBRATED] = state.clock[PASS]
