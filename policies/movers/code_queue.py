"""The prefetch queue of MoE-SpAc's released code (facts of its source, not of the paper).

Scores of residents (`memory`): a layer's residents are frozen at K + 1 while it runs, drop to 0
when it has run, and regain their level only when the queue hands them out again. The queue has one
first-in first-out list per level; each layer, when it has run, enters all its experts of level > 0,
resident or not, and its older entries are void. Highest level first; a missing expert takes the
resident of lowest (score, expert), only if that score is below the threshold (`tau`), else the
queue waits, whatever stands behind.

The original copies one expert at a time in a thread of its own; here the driver's credits limit
copies, and the queue is served at decisions only.
"""

from __future__ import annotations

from policies.compile import inner
from policies.ledger import NOWHERE, READY
from policies.movers.victims import free_slot, note_eviction
from policies.plan import PREFETCH_LIMIT, add_prefetch
from policies.state import LAYER, PASS

HEAD = 0
LENGTH = 1
ENTRIES = 2


@inner
def void_entry(state, entry):
    """True if the layer of a queue entry has run again since (or runs now)."""
    layers, experts = state.utility.shape
    pushed = entry // (layers * experts)
    layer = (entry % (layers * experts)) // experts
    last = state.clock[PASS]
    if state.clock[LAYER] < layer:
        last -= 1  # the layer has not yet run in this pass
    return pushed != last


@inner
def freeze_layer(state, layer):
    """While a layer runs its residents, needed or not, are above every level: no victims."""
    state.memory[layer, :] = float(state.queue.shape[0])


@inner
def push_layer(state, layer):
    """The layer has run: residents drop to score 0, experts of level > 0 enter the queue."""
    layers, experts = state.utility.shape
    queue, utilities = state.queue, state.utility
    capacity = queue.shape[1] - ENTRIES
    for expert in range(experts):
        state.memory[layer, expert] = 0.0
        level = min(int(utilities[layer, expert]), queue.shape[0] - 1)
        if level <= 0:
            continue
        if queue[level, LENGTH] == capacity:
            kept = 0
            for place in range(capacity):
                entry = queue[level, ENTRIES + (queue[level, HEAD] + place) % capacity]
                if not void_entry(state, entry):
                    queue[level, ENTRIES + (queue[level, HEAD] + kept) % capacity] = entry
                    kept += 1
            queue[level, LENGTH] = kept
        entry = state.clock[PASS] * layers * experts + layer * experts + expert
        end = (queue[level, HEAD] + queue[level, LENGTH]) % capacity
        queue[level, ENTRIES + end] = entry
        queue[level, LENGTH] += 1


@inner
def lowest_score(ledger, state, plan):
    """Slot of the resident of lowest (score, expert) below the threshold of its layer, FREE slots
    first; NOWHERE if there is none."""
    slot = free_slot(ledger, plan)
    if slot != NOWHERE:
        return slot
    scores, taus = state.memory, state.tau
    slot_expert, slot_state = ledger.slot_expert, ledger.slot_state
    readers, taken = ledger.slot_readers, plan.taken
    experts = scores.shape[1]
    best = NOWHERE
    best_score = 0.0
    for slot in range(slot_state.shape[0]):
        if slot_state[slot] != READY or readers[slot] > 0 or taken[slot] != 0:
            continue
        key = slot_expert[slot]
        layer = key // experts
        score = scores[layer, key - layer * experts]
        if score >= taus[layer]:
            continue
        if (
            best == NOWHERE
            or score < best_score
            or (score == best_score and key < slot_expert[best])
        ):
            best = slot
            best_score = score
    return best


@inner
def serve_queue(ledger, state, plan):
    """Hand out entries while there are credits and victims."""
    queue, scores = state.queue, state.memory
    layers, experts = scores.shape
    capacity = queue.shape[1] - ENTRIES
    for level in range(queue.shape[0] - 1, 0, -1):
        while queue[level, LENGTH] > 0:
            entry = queue[level, ENTRIES + queue[level, HEAD]]
            key = entry % (layers * experts)
            layer = key // experts
            expert = key - layer * experts
            if not void_entry(state, entry) and level >= state.tau[layer]:
                if ledger.expert_slot[key] == NOWHERE:
                    if plan.credits[0] <= 0 or plan.size[1] >= PREFETCH_LIMIT:
                        return
                    slot = lowest_score(ledger, state, plan)
                    if slot == NOWHERE:
                        return
                    note_eviction(ledger, state, slot)
                    add_prefetch(plan, key, slot)
                    scores[layer, expert] = float(level)
                else:
                    scores[layer, expert] = max(scores[layer, expert], float(level))
            queue[level, HEAD] = (queue[level, HEAD] + 1) % capacity
            queue[level, LENGTH] -= 1
