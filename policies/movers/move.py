"""Dispatch of the mover: the prefetches of a decision at a layer's start, at its end, or after a
draft step."""

from __future__ import annotations

from policies import kinds
from policies.compile import kernel
from policies.movers.admit import admit_misses
from policies.movers.by_utility import move_by_utility
from policies.movers.next_layer import prefetch_next_layers
from policies.state import ESTIMATOR, LAYER, PASS


@kernel
def move(program, state, ledger, observation, plan):
    """Append prefetches to the plan, at most `plan.credits`. The layer is `state.clock[LAYER]`, -1
    while drafting."""
    kind = program.mover
    layer = state.clock[LAYER]
    if kind == kinds.ADMIT:
        admit_misses(ledger, state, observation, plan)
    elif kind == kinds.NEXT_LAYER:
        if layer >= 0:
            prefetch_next_layers(program, ledger, state, observation, plan, layer)
    elif kind == kinds.UNIFIED:
        move_by_utility(ledger, state, plan, True)
    elif kind == kinds.STATIC_SET and (
        program.estimator != kinds.STATIC or state.clock[PASS] >= state.parameters[ESTIMATOR, 0]
    ):
        move_by_utility(ledger, state, plan, False)
