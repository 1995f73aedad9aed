"""Draft length of most expected tokens per time, 0 drafted tokens included.

A pass with gamma drafted tokens takes fixed parts from the cost table, and for its experts

    scale * first * (ratio 0 + ... + ratio gamma)

where `first` is the mean time of row 0 alone, ratio j what row j adds to the rows before it, in
units of row 0 of the same passes, and `scale` what the plans really took over that sum. Rows never
seen take the ratio of the one before. Shorter drafts than the present one need no trial, longer
ones do: every so often one or two tokens more are drafted, and one more wherever that would pay if
its acceptance were a little above the estimate. Trials fade with every pass, so that a few unlucky
ones do not keep the window closed for the rest of a run (discounted UCB: Garivier and Moulines
2011).
"""

from __future__ import annotations

from policies.compile import inner
from policies.state import (
    EXPERT_NS,
    FIRST_NS,
    GAMMA,
    PASS,
    PLANNED_NS,
    ROW_NS,
    ROW_SHARE,
    ROW_SUM,
    TAKEN_NS,
    WINDOW,
)
from policies.windows.acceptance import expected_tokens
from policies.windows.pass_time import fixed_layer_ns

EXPLORE = 1
HOPE = 2
FIRST_PASSES = 2  # at full length, to see all rows
PRIOR = 0.5  # passes that the ratio of the row before counts as


@inner
def observe_pass(state, decay):
    """Fold the rows of the finished pass into the decayed sums."""
    window, measured = state.window, state.measured
    first = window[ROW_NS, 0]
    rows = min(state.clock[GAMMA] + 1, window.shape[1])
    planned = 0.0
    for row in range(rows):
        planned += window[ROW_NS, row]
        window[ROW_SUM, row] = decay * window[ROW_SUM, row] + window[ROW_NS, row]
        window[ROW_SHARE, row] = decay * window[ROW_SHARE, row] + first
    measured[FIRST_NS] = decay * measured[FIRST_NS] + (1.0 - decay) * first
    measured[TAKEN_NS] = decay * measured[TAKEN_NS] + measured[EXPERT_NS]
    measured[PLANNED_NS] = decay * measured[PLANNED_NS] + planned


@inner
def pass_ns(state, costs, gamma, decay):
    """Estimated time of a pass with `gamma` drafted tokens."""
    window, measured = state.window, state.measured
    seen = 1.0 - decay ** float(state.clock[PASS])
    first = measured[FIRST_NS] / max(seen, 1e-9)
    scale = 1.0
    if measured[PLANNED_NS] > 0.0:
        scale = measured[TAKEN_NS] / measured[PLANNED_NS]
    total = 1.0
    ratio = 0.7  # of the second row, before any was seen
    for row in range(1, gamma + 1):
        prior = PRIOR * first
        ratio = (window[ROW_SUM, row] + prior * ratio) / max(window[ROW_SHARE, row] + prior, 1.0)
        total += ratio
    layers = state.utility.shape[0]
    fixed = costs.pass_ns + gamma * costs.draft_step_ns + layers * fixed_layer_ns(costs, gamma + 1)
    return fixed + scale * first * total


@inner
def choose_by_gain(state, costs, gamma_max, decay):
    """gamma in 0..gamma_max; the largest in the first passes, a longer one than the best from time
    to time or where hope is."""
    now = state.clock[PASS]
    if now < FIRST_PASSES or gamma_max == 0:
        return gamma_max
    best = 0
    highest = 0.0
    for gamma in range(gamma_max + 1):
        value = expected_tokens(state, gamma, 0.0) / max(pass_ns(state, costs, gamma, decay), 1.0)
        if value > highest:
            highest = value
            best = gamma
    every = int(state.parameters[WINDOW, EXPLORE])
    if every > 0 and now % every == 0:
        return min(gamma_max, best + 1 + (now // every) % 2)
    longer = min(best + 1, gamma_max)
    hope = state.parameters[WINDOW, HOPE]
    hoped = expected_tokens(state, longer, hope) / max(pass_ns(state, costs, longer, decay), 1.0)
    return longer if hoped > highest else best
