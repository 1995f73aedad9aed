"""Draft length by measurement: most expected tokens per time, where the time of a pass is what
passes of that length took lately (by the policy's own estimate), 0 drafted tokens included.

Lengths not tried take the line through those that were; every so often the neighbour that was tried
longest ago is tried again, since the cache drifts.
"""

from __future__ import annotations

from policies.compile import inner
from policies.state import LAST_RUN, PASS, RUN_NS, RUNS, WINDOW
from policies.windows.acceptance import expected_tokens

EXPLORE = 1


@inner
def observe_pass_time(state, gamma, pass_ns, decay):
    """A pass with `gamma` drafted tokens took `pass_ns`."""
    window = state.window
    gamma = min(gamma, window.shape[1] - 1)
    runs = decay * window[RUNS, gamma]
    window[RUN_NS, gamma] = (runs * window[RUN_NS, gamma] + pass_ns) / (runs + 1.0)
    window[RUNS, gamma] = runs + 1.0
    window[LAST_RUN, gamma] = state.clock[PASS]


@inner
def fit_pass_time(state, gamma_max):
    """Weighted least squares of pass time on gamma: (time at 0, time per drafted token). With one
    length seen, drafting grows in proportion and the rest by half of that."""
    window = state.window
    weight = 0.0
    mean_gamma = 0.0
    mean_ns = 0.0
    for gamma in range(gamma_max + 1):
        weight += window[RUNS, gamma]
        mean_gamma += window[RUNS, gamma] * gamma
        mean_ns += window[RUNS, gamma] * window[RUN_NS, gamma]
    if weight == 0.0:
        return 0.0, 0.0
    mean_gamma /= weight
    mean_ns /= weight
    spread = 0.0
    product = 0.0
    for gamma in range(gamma_max + 1):
        away = gamma - mean_gamma
        spread += window[RUNS, gamma] * away * away
        product += window[RUNS, gamma] * away * (window[RUN_NS, gamma] - mean_ns)
    slope = mean_ns * 0.5 / (mean_gamma + 1.0)
    if spread > 0.25 * weight:
        slope = max(product / spread, 0.0)
    return max(mean_ns - slope * mean_gamma, 0.1 * mean_ns), slope


@inner
def choose_by_gain(state, gamma_max):
    """gamma in 0..gamma_max; the run's own in the first passes, the neighbour of the best from time
    to time."""
    now = state.clock[PASS]
    if now < 4 or gamma_max == 0:
        return gamma_max
    start, slope = fit_pass_time(state, gamma_max)
    if start <= 0.0:
        return gamma_max
    best = gamma_max
    highest = 0.0
    for gamma in range(gamma_max + 1):
        time_ns = start + slope * gamma
        runs = state.window[RUNS, gamma]
        # Trust a length's own mean as far as it was tried.
        time_ns = (2.0 * time_ns + runs * state.window[RUN_NS, gamma]) / (2.0 + runs)
        value = expected_tokens(state, gamma) / time_ns
        if value > highest:
            highest = value
            best = gamma
    every = int(state.parameters[WINDOW, EXPLORE])
    if every > 0 and now % every == 0:
        lower = max(0, best - 1 - (now // every) % 2)
        upper = min(gamma_max, best + 1 + (now // every) % 2)
        if state.window[LAST_RUN, lower] <= state.window[LAST_RUN, upper]:
            return lower
        return upper
    return best
