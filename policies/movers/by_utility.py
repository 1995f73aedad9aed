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
from policies.movers.candidates import insert_candidate, lowest_anywhere, lowest_evictable
from policies.movers.victims import find_victim, note_eviction
from policies.plan import PREFETCH_LIMIT, add_prefetch, prefetches
from policies.state import LAYER

NO_LIMIT = 1e300


@inner
def renew_best_missing(ledger, state, layer):
    """Set `ledger.best_missing` of `layer`: few layers change between two decisions, and looking at
    all experts of all layers each time would take most of the mover's time."""
    utilities, expert_slot = state.flat_utility, ledger.expert_slot
    experts = state.utility.shape[1]
    best = -np.inf
    for key in range(layer * experts, (layer + 1) * experts):
        if expert_slot[key] == NOWHERE:
            best = max(best, utilities[key])
    ledger.best_missing[layer] = best
    ledger.missing_version[layer] = state.utility_version[layer]


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
    pool_floor = -1.0  # not known yet: most layers have no candidate, so it is often never needed
    for layer in range(layers):
        least = 0.0
        if use_tau:
            least = float(taus[layer])
        if computed[layer] != versions[layer]:
            renew_best_missing(ledger, state, layer)
        if best_missing[layer] <= margin or best_missing[layer] < least:
            continue
        if quota[layer] >= 0:
            floor = max(lowest_evictable(ledger, state, plan, layer, NO_LIMIT), 0.0)
        else:
            if pool_floor < 0.0:
                pool_floor = max(lowest_anywhere(ledger, state, plan, use_tau, NO_LIMIT), 0.0)
            floor = pool_floor
        distance = layer - running if layer > running else layer - running + layers
        nearness = 1.0 - proximity * (distance - 1) / layers
        for expert in range(experts):
            utility = utility_table[layer, expert]
            if utility <= floor + margin or utility < least:
                continue
            priority = utility * nearness
            if length == PREFETCH_LIMIT and (
                priority < priorities[length - 1]
                or (priority == priorities[length - 1] and distance >= distances[length - 1])
            ):
                continue
            if layer == running and placement[expert] >= api.FETCH:
                continue  # this very plan copies it already
            key = layer * experts + expert
            if expert_slot[key] == NOWHERE:
                length = insert_candidate(
                    keys, priorities, distances, length, key, priority, distance
                )
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
