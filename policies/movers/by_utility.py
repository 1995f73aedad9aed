"""One utility for prefetch and eviction: the best missing experts replace the worst residents,
highest first.

With `use_tau` this is the asynchronous engine of MoE-SpAc: only experts with utility >= tau of
their layer are fetched, only residents below theirs are dropped. Without it, any missing expert may
replace a resident of lower utility; `margin` keeps near-equal experts from trading places, and
`proximity` ranks candidates of layers that run soon above those of later ones.
"""

from __future__ import annotations

import numpy as np

from policies import api
from policies.compile import inner
from policies.ledger import NOWHERE
from policies.movers.candidates import (
    candidate_room,
    insert_candidate,
    lowest_anywhere,
    lowest_evictable,
    renew_best_missing,
)
from policies.movers.victims import find_victim, note_eviction
from policies.plan import add_prefetch, prefetches
from policies.state import LAYER

NO_LIMIT = 1e300


@inner
def move_by_utility(ledger, state, plan, use_tau, proximity, margin):
    """Fill the prefetches of the plan, at most `plan.credits`, over all layers."""
    if plan.credits[0] <= 0:
        return
    utility_table, taus, quota = state.utility, state.tau, state.quota
    expert_slot, placement = ledger.expert_slot, plan.placement
    best_missing, computed = ledger.best_missing, ledger.missing_version
    versions = state.utility_version
    layers, experts = utility_table.shape
    running = state.clock[LAYER]
    keys, priorities, distances = plan.candidate_key, plan.candidate_value, plan.candidate_rank
    length = np.int64(0)
    room = candidate_room(state, plan, proximity == 0.0)
    pool_floor = -1.0  # not known yet: most layers have no candidate, so it is often never needed
    layer = running
    for ahead in range(1, layers + 1):  # the layer that runs soonest first
        layer = layer + 1 if layer + 1 < layers else 0
        least = 0.0
        if use_tau:
            least = float(taus[layer])
        if computed[layer] != versions[layer]:
            renew_best_missing(ledger, state, layer)
        best = best_missing[layer]
        if best <= margin or best < least:
            continue
        distance = ahead
        nearness = 1.0 - proximity * (distance - 1) / layers
        if length == room and best * nearness <= priorities[length - 1]:
            continue  # later ones lose ties
        if quota[layer] >= 0:
            floor = max(lowest_evictable(ledger, state, plan, layer, NO_LIMIT), 0.0)
        else:
            if pool_floor < 0.0:
                pool_floor = max(lowest_anywhere(ledger, state, plan, use_tau, NO_LIMIT), 0.0)
            floor = pool_floor
        if best <= floor + margin:
            continue
        utilities = utility_table[layer]
        slots = expert_slot[layer * experts : (layer + 1) * experts]
        for expert in range(experts):
            utility = utilities[expert]
            if utility <= floor + margin or utility < least:
                continue
            priority = utility * nearness
            if length == room and priority <= priorities[length - 1]:
                continue
            if layer == running and placement[expert] >= api.FETCH:
                continue  # this very plan copies it already
            if slots[expert] == NOWHERE:
                length = insert_candidate(
                    keys, priorities, distances, length, room, layer * experts + expert, priority,
                    distance,
                )  # fmt: skip
    for place in range(length):
        if plan.credits[0] <= 0:
            return
        if prefetches(plan, keys[place]):
            continue  # a prediction asked for it already
        layer = keys[place] // experts
        limit = utility_table[layer, keys[place] - layer * experts] - margin
        slot = find_victim(ledger, state, plan, layer, limit, use_tau)
        if slot != NOWHERE:
            note_eviction(ledger, state, slot)
            add_prefetch(plan, keys[place], slot)
