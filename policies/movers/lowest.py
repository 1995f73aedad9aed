"""The resident of each layer that is worth least, kept in the ledger: few layers change between two
decisions, and looking at every slot of the pool each time would take most of the mover's time."""

from __future__ import annotations

import numpy as np

from policies.compile import inner
from policies.ledger import NOWHERE, READY

# Constants as numpy numbers: numba compiles a callee once more for each Python constant.
ALL = np.bool_(False)
SPARED = np.bool_(True)


@inner
def search_lowest(ledger, state, plan, layer, spare):
    """Slot of the READY expert of `layer` with the lowest (utility, stamp, slot), or NOWHERE;
    `spare`: leave out those that are read, filled or kept by the plan at hand."""
    utilities, stamps = state.utility[layer], state.stamp[layer]
    slot_state, readers, taken = ledger.slot_state, ledger.slot_readers, plan.taken
    experts = utilities.shape[0]
    slots = ledger.expert_slot[layer * experts : (layer + 1) * experts]
    best = np.int64(NOWHERE)
    best_utility = 0.0
    best_stamp = np.int64(0)
    for expert in range(experts):
        slot = np.int64(slots[expert])
        if slot < 0 or slot_state[slot] != READY:
            continue
        if spare and (readers[slot] > 0 or taken[slot] != 0):
            continue
        utility, stamp = utilities[expert], stamps[expert]
        if best != NOWHERE and (
            utility > best_utility
            or (utility == best_utility and stamp > best_stamp)
            or (utility == best_utility and stamp == best_stamp and slot > best)
        ):
            continue
        best = slot
        best_utility = utility
        best_stamp = stamp
    return best


@inner
def renew_lowest(ledger, state, plan, layer):
    """Set `lowest_slot` and `lowest_utility` of `layer` in the ledger."""
    slot = search_lowest(ledger, state, plan, layer, ALL)
    ledger.lowest_slot[layer] = slot
    ledger.lowest_utility[layer] = np.inf
    if slot != NOWHERE:
        ledger.lowest_utility[layer] = state.flat_utility[ledger.slot_expert[slot]]
    ledger.lowest_version[layer] = state.utility_version[layer]
