"""Dispatch of the window: draft length of the coming pass, and what a finished pass teaches."""

from __future__ import annotations

from policies import kinds
from policies.compile import inner
from policies.state import EXPERT_NS, GAMMA, ROW_NS, WINDOW
from policies.windows.acceptance import fade_acceptance, observe_acceptance
from policies.windows.expected_gain import choose_by_gain, observe_pass
from policies.windows.roofline import choose_by_roofline

FIXED_GAMMA = 0
DECAY = 0
FADE = 3


@inner
def choose_window(program, state, costs, gamma_max):
    """gamma of the coming pass, 0..gamma_max."""
    if program.window == kinds.ROOFLINE:
        return choose_by_roofline(state, costs, gamma_max)
    if program.window == kinds.EXPECTED_GAIN:
        return choose_by_gain(state, costs, gamma_max, state.parameters[WINDOW, DECAY])
    gamma = int(state.parameters[WINDOW, FIXED_GAMMA])
    if gamma < 0:
        return gamma_max
    return min(gamma, gamma_max)


@inner
def observe_window(program, state, accepted):
    """The pass under way committed `accepted` of its drafted tokens and one more."""
    if program.window == kinds.FIXED_WINDOW:
        return
    decay = state.parameters[WINDOW, DECAY]
    gamma = state.clock[GAMMA]
    if program.window != kinds.EXPECTED_GAIN:
        observe_acceptance(state, gamma, accepted, decay)
    else:
        fade_acceptance(state, state.parameters[WINDOW, FADE])
        observe_acceptance(state, gamma, accepted, 1.0)
        observe_pass(state, decay)
        state.window[ROW_NS] = 0.0
        state.measured[EXPERT_NS] = 0.0
