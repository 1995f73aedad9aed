"""Prefetch for the layers just ahead, as predicted by their routers on this layer's router input
(binary prefetch)."""

from __future__ import annotations

import numpy as np

from policies import kinds
from policies.compile import kernel
from policies.ledger import NOWHERE
from policies.movers.victims import find_victim, note_eviction
from policies.plan import add_prefetch
from policies.state import MOVER

HORIZON = 0


@kernel
def prefetch_next_layers(program, ledger, state, observation, plan, layer):
    """Predicted and missing experts of layers layer+1 .. layer+HORIZON, nearest layer first;
    within a layer by predicted count
    (signal COUNT) or by expert number (signal BIT: a prediction is only a set)."""
    layers, experts = state.utility.shape
    for step in range(int(state.parameters[MOVER, HORIZON])):
        ahead = layer + 1 + step
        if ahead >= layers:
            return
        for expert in range(experts):
            slot = ledger.expert_slot[ahead * experts + expert]
            if observation.predicted[step, expert] > 0 and slot != NOWHERE:
                plan.taken[slot] = 1  # predicted residents are no victims
        highest = 1
        if program.signal == kinds.COUNT:
            highest = observation.predicted[step].max()
        for count in range(highest, 0, -1):
            for expert in range(experts):
                if plan.credits[0] <= 0:
                    return
                predicted = observation.predicted[step, expert]
                if program.signal != kinds.COUNT:
                    predicted = min(predicted, 1)
                key = ahead * experts + expert
                if predicted != count or ledger.expert_slot[key] != NOWHERE:
                    continue
                slot = find_victim(ledger, state, plan, ahead, np.inf, False)
                if slot == NOWHERE:
                    return
                note_eviction(ledger, state, slot)
                add_prefetch(plan, key, slot)
