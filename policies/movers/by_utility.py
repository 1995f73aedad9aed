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
from policies.movers.victims import find_victim, note_eviction
from policies.plan import PREFETCH_LIMIT, add_prefetch, fetches
from policies.state import LAYER

NO_LIMIT = 1e300


@kernel
def move_by_utility(ledger, state, plan, use_tau):
    """Fill the prefetches of the plan, at most `plan.credits`, over all layers."""
    if plan.credits[0] <= 0:
        return
    utility_table, taus, quota = state.utility, state.tau, state.quota
    expert_slot = ledger.expert_slot
    layers, experts = utility_table.shape
    running = state.clock[LAYER]
    keys = np.empty(PREFETCH_LIMIT, np.int64)
    utilities = np.empty(PREFETCH_LIMIT, np.float64)
    distances = np.empty(PREFETCH_LIMIT, np.int64)
    length = 0
    pool_floor = lowest_anywhere(ledger, state, plan, use_tau, NO_LIMIT)
    for layer in range(layers):
        floor = max(pool_floor, 0.0)
        if quota[layer] >= 0:
            floor = max(lowest_evictable(ledger, state, plan, layer, NO_LIMIT), 0.0)
        least = 0.0
        if use_tau:
            least = float(taus[layer])
        distance = layer - running if layer > running else layer - running + layers
        for expert in range(experts):
            utility = utility_table[layer, expert]
            if utility <= floor or utility < least:
                continue
            if length == PREFETCH_LIMIT and utility < utilities[length - 1]:
                continue
            key = layer * experts + expert
            if expert_slot[key] == NOWHERE and not fetches(plan, running, layer, expert):
                length = insert_candidate(
                    keys, utilities, distances, length, key, utility, distance
                )
    for place in range(length):
        if plan.credits[0] <= 0:
            return
        slot = find_victim(ledger, state, plan, keys[place] // experts, utilities[place], use_tau)
        if slot != NOWHERE:
            note_eviction(ledger, state, slot)
            add_prefetch(plan, keys[place], slot)
