"""Admission of misses: what the CPU had to compute is copied in behind the work, for the next time
it is needed."""

from __future__ import annotations

import numpy as np

from policies import api
from policies.compile import inner
from policies.ledger import NOWHERE
from policies.movers.candidates import insert_candidate
from policies.movers.victims import ANY_TAU, find_victim, note_eviction
from policies.plan import add_prefetch
from policies.state import LAYER, PASS


@inner
def _offer_layer(ledger, state, observation, plan, keys, utilities, counts, length, layer, since):
    utility_table, stamps, expert_slot = state.utility, state.stamp, ledger.expert_slot
    rows, placement = observation.counts, plan.placement
    running = state.clock[LAYER]
    experts = utility_table.shape[1]
    if since < 0:  # before the first pass: a stamp of -1 means never used
        return length
    for expert in range(experts):
        if stamps[layer, expert] != since:
            continue
        if layer == running and placement[expert] >= api.FETCH:
            continue  # this very plan copies it already
        key = layer * experts + expert
        if expert_slot[key] == NOWHERE:
            count = 0
            if layer == running:
                count = -rows[expert]
            length = insert_candidate(
                keys, utilities, counts, length, key, utility_table[layer, expert], count
            )
    return length


@inner
def admit_misses(ledger, state, observation, plan):
    """At a layer: its own misses of this pass, highest utility first, more rows first. While
    drafting: the misses of the last
    pass in all layers. A victim must have a lower utility than the newcomer."""
    if plan.credits[0] <= 0:
        return
    layers, experts = state.utility.shape
    keys, utilities, counts = plan.candidate_key, plan.candidate_value, plan.candidate_rank
    length = np.int64(0)
    if state.clock[LAYER] >= 0:
        length = _offer_layer(
            ledger, state, observation, plan, keys, utilities, counts, length,
            state.clock[LAYER], state.clock[PASS],
        )  # fmt: skip
    else:
        for layer in range(layers):
            length = _offer_layer(
                ledger, state, observation, plan, keys, utilities, counts, length,
                layer, state.clock[PASS] - 1,
            )  # fmt: skip
    for place in range(length):
        if plan.credits[0] <= 0:
            return
        layer = keys[place] // experts
        slot = find_victim(ledger, state, plan, layer, utilities[place], ANY_TAU)
        if slot != NOWHERE:
            note_eviction(ledger, state, slot)
            add_prefetch(plan, keys[place], slot)
