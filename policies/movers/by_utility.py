"""One utility for prefetch and eviction: the best missing experts replace the worst residents,
highest first.

With `use_tau` this is the asynchronous engine of MoE-SpAc: only experts with utility >= tau of
their layer are
fetched, only residents below theirs are dropped. Without it, any missing expert may replace a
resident of lower utility.
"""

from __future__ import annotations

import numpy as np

from policies.compile import kernel
from policies.ledger import NOWHERE
from policies.movers.candidates import insert_candidate, lowest_anywhere, lowest_evictable
from policies.movers.victims import find_victim, next_run_distance, note_eviction
from policies.plan import PREFETCH_LIMIT, add_prefetch

NO_LIMIT = 1e300


@kernel
def move_by_utility(ledger, state, plan, use_tau):
    """Fill the prefetches of the plan, at most `plan.credits`, over all layers."""
    if plan.credits[0] <= 0:
        return
    layers, experts = state.utility.shape
    keys = np.empty(PREFETCH_LIMIT, np.int64)
    utilities = np.empty(PREFETCH_LIMIT, np.float64)
    distances = np.empty(PREFETCH_LIMIT, np.int64)
    length = 0
    pool_floor = lowest_anywhere(ledger, state, plan, use_tau, NO_LIMIT)
    for layer in range(layers):
        floor = pool_floor
        if state.quota[layer] >= 0:
            floor = lowest_evictable(ledger, state, plan, layer, NO_LIMIT)
        distance = next_run_distance(state, layer)
        for expert in range(experts):
            utility = state.utility[layer, expert]
            if utility <= 0.0 or utility <= floor:
                continue
            if use_tau and utility < state.tau[layer]:
                continue
            key = layer * experts + expert
            if ledger.expert_slot[key] != NOWHERE:
                continue
            length = insert_candidate(keys, utilities, distances, length, key, utility, distance)
    for place in range(length):
        if plan.credits[0] <= 0:
            return
        slot = find_victim(ledger, state, plan, keys[place] // experts, utilities[place], use_tau)
        if slot != NOWHERE:
            note_eviction(ledger, state, slot)
            add_prefetch(plan, keys[place], slot)
