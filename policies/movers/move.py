"""Dispatch of the mover: the prefetches of a decision at a layer's start, at its end, or after a
draft step."""

from __future__ import annotations

from policies import kinds
from policies.compile import inner
from policies.movers.admit import admit_misses
from policies.movers.by_utility import move_by_utility
from policies.movers.code_queue import freeze_layer, push_layer, serve_queue
from policies.movers.next_layer import (
    CUTOFF,
    THEN_UTILITY,
    cutoff_layer,
    note_predicted_misses,
    prefetch_next_layers,
)
from policies.movers.predicted_utility import HORIZON, expect_predictions
from policies.state import ESTIMATOR, LAYER, LEAVING, MOVER, PASS, ROWS

PROXIMITY = 0
MARGIN = 0
IDLE_MARGIN = 2


@inner
def move(program, state, costs, ledger, observation, plan):
    """Append prefetches to the plan, at most `plan.credits`. The layer is `state.clock[LAYER]`, -1
    while drafting."""
    kind = program.mover
    layer = state.clock[LAYER]
    leaving = state.clock[LEAVING] == 1
    by_utility = False
    use_tau = False
    proximity = 0.0
    margin = 0.0
    if kind == kinds.ADMIT:
        admit_misses(ledger, state, observation, plan)
    elif kind == kinds.NEXT_LAYER:
        if layer >= 0:
            cutoff = state.utility.shape[0]
            if state.parameters[MOVER, CUTOFF] > 0.0:
                if not leaving:
                    note_predicted_misses(state, ledger, observation, layer)
                cutoff = cutoff_layer(state, costs, state.clock[ROWS])
            prefetch_next_layers(program, ledger, state, observation, plan, layer, cutoff)
        by_utility = state.parameters[MOVER, THEN_UTILITY] > 0.0
    elif kind == kinds.UNIFIED:
        by_utility = True
        use_tau = True
    elif kind == kinds.STATIC_SET:
        by_utility = (
            program.estimator != kinds.STATIC or state.clock[PASS] >= state.parameters[ESTIMATOR, 0]
        )
        proximity = state.parameters[MOVER, PROXIMITY]
    elif kind == kinds.SAVED_TIME:
        predicts = program.estimator == kinds.REUSE and state.parameters[MOVER, HORIZON] > 0.0
        if layer >= 0 and not leaving and predicts:
            expect_predictions(state, observation, layer)
        by_utility = True
        # While drafting, and in the head before it, the link is free and no CPU work waits.
        idle = layer < 0 or (leaving and layer == state.utility.shape[0] - 1)
        margin = state.parameters[MOVER, IDLE_MARGIN if idle else MARGIN]
    elif kind == kinds.CODE_QUEUE:
        if leaving:
            push_layer(state, layer)
        elif layer >= 0:
            freeze_layer(state, layer)
        serve_queue(ledger, state, plan)
    if by_utility:
        move_by_utility(ledger, state, plan, use_tau, proximity, margin)
