"""Prefetch for the layers just ahead, as their routers predict from this layer's router input."""

from __future__ import annotations

import numpy as np

from policies import kinds
from policies.compile import inner
from policies.ledger import NOWHERE
from policies.movers.victims import ANY_TAU, find_victim, note_eviction
from policies.plan import add_prefetch
from policies.state import GAMMA, MOVER, PREDICTED_MISSES

HORIZON = 0
PER_LAYER = 1
CUTOFF = 2
THEN_UTILITY = 3


@inner
def cutoff_layer(state, costs, rows):
    """SP-MoE's latency model: the last layer whose predicted copies still fit. Copies of layers
    0..L take L * misses * copy; the time before layer L runs is drafting + L layers. Returns the
    number of layers worth prefetching for."""
    layers = state.utility.shape[0]
    layer_ns = costs.dense_ns[min(rows, costs.dense_ns.shape[0] - 1)] + costs.router_ns
    copies_ns = state.measured[PREDICTED_MISSES] * (costs.copy_latency_ns + costs.copy_ns)
    excess = copies_ns - layer_ns
    if excess <= 0.0:
        return layers
    return min(layers, 1 + int(state.clock[GAMMA] * costs.draft_step_ns / excess))


@inner
def note_predicted_misses(state, ledger, observation, layer):
    """Running mean of the predicted experts of the next layer that are in no slot."""
    layers, experts = state.utility.shape
    if layer + 1 >= layers:
        return
    missing = 0
    for expert in range(experts):
        slot = ledger.expert_slot[(layer + 1) * experts + expert]
        if observation.predicted[0, expert] > 0 and slot == NOWHERE:
            missing += 1
    mean = state.measured[PREDICTED_MISSES]
    state.measured[PREDICTED_MISSES] = mean + 0.05 * (missing - mean)


@inner
def prefetch_next_layers(program, ledger, state, observation, plan, layer, cutoff):
    """Predicted and missing experts of layers layer+1 .. layer+HORIZON (below `cutoff`), nearest
    layer first; within a layer by predicted count (signal BIT: by expert number, a prediction is
    only a set). Predicted residents are no victims."""
    expert_slot, taken, predictions = ledger.expert_slot, plan.taken, observation.predicted
    layers, experts = state.utility.shape
    limit = int(state.parameters[MOVER, PER_LAYER])
    for step in range(int(state.parameters[MOVER, HORIZON])):
        ahead = layer + 1 + step
        if ahead >= min(layers, cutoff):
            return
        highest = 1
        for expert in range(experts):
            slot = expert_slot[ahead * experts + expert]
            if predictions[step, expert] > 0 and slot != NOWHERE:
                taken[slot] = 1
            if program.signal != kinds.BIT:
                highest = max(highest, predictions[step, expert])
        added = 0
        for count in range(highest, 0, -1):
            for expert in range(experts):
                predicted = predictions[step, expert]
                if program.signal == kinds.BIT:
                    predicted = min(predicted, 1)
                key = ahead * experts + expert
                if predicted != count or expert_slot[key] != NOWHERE:
                    continue
                if plan.credits[0] <= 0 or (limit > 0 and added >= limit):
                    break
                slot = find_victim(ledger, state, plan, ahead, np.inf, ANY_TAU)
                if slot == NOWHERE:
                    return
                note_eviction(ledger, state, slot)
                add_prefetch(plan, key, slot)
                added += 1
