"""Admission of misses: what the CPU had to compute is copied in behind the work, for the next time
it is needed."""

from __future__ import annotations

import numpy as np

from policies import api
from policies.compile import inner
from policies.ledger import NOWHERE
from policies.movers.candidates import candidate_room, insert_candidate, renew_best_missing
from policies.movers.victims import ANY_TAU, find_victim, note_eviction
from policies.plan import add_prefetch
from policies.state import LAYER, PASS


@inner
def _offer_running(ledger, state, observation, plan, keys, utilities, counts, room, layer):
    utility_table, expert_slot = state.utility[layer], ledger.expert_slot
    active, rows, placement = observation.active, observation.counts, plan.placement
    base = layer * utility_table.shape[0]
    length = np.int64(0)
    for place in range(observation.size[0]):
        expert = active[place]
        # What this very plan copies is skipped.
        if placement[expert] < api.FETCH and expert_slot[base + expert] == NOWHERE:
            length = insert_candidate(
                keys, utilities, counts, length, room, base + expert, utility_table[expert],
                -np.int64(rows[expert]),
            )  # fmt: skip
    return length


@inner
def _offer_layer(ledger, state, keys, utilities, counts, length, room, layer, since):
    utility_table, stamps = state.utility[layer], state.stamp[layer]
    experts = stamps.shape[0]
    slots = ledger.expert_slot[layer * experts : (layer + 1) * experts]
    for expert in range(experts):
        if stamps[expert] == since and slots[expert] == NOWHERE:
            length = insert_candidate(
                keys, utilities, counts, length, room, layer * experts + expert,
                utility_table[expert], np.int64(0),
            )  # fmt: skip
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
    running, since = state.clock[LAYER], state.clock[PASS] - 1
    room = candidate_room(state, plan, True)
    length = np.int64(0)
    if running >= 0:
        length = _offer_running(
            ledger, state, observation, plan, keys, utilities, counts, room, running
        )
    elif since >= 0:  # before the first pass a stamp of -1 means never used
        best_missing = ledger.best_missing
        for layer in range(layers):
            if ledger.missing_version[layer] != state.utility_version[layer]:
                renew_best_missing(ledger, state, layer)
            if length == room and best_missing[layer] <= utilities[length - 1]:
                continue  # later ones lose ties
            length = _offer_layer(
                ledger, state, keys, utilities, counts, length, room, layer, since
            )
    for place in range(length):
        if plan.credits[0] <= 0:
            return
        layer = keys[place] // experts
        slot = find_victim(ledger, state, plan, layer, utilities[place], ANY_TAU)
        if slot != NOWHERE:
            note_eviction(ledger, state, slot)
            add_prefetch(plan, keys[place], slot)
