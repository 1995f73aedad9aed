"""Slot states and their legal transitions, shared by the simulator and the runtime.

FREE --begin_fill--> FILLING --publish--> READY; READY (unread) --begin_fill of another expert-->
FILLING.
The map entry of the old expert goes before the copy starts; the new expert counts as resident only
once its copy
has landed. Capacity is always computed from the states, never kept in a counter of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from policies.compile import inlined, inner

FREE = 0
FILLING = 1
READY = 2
NOWHERE = -1

OK = 0
BAD_SLOT = 1
BAD_EXPERT = 2
ALREADY_HELD = 3
VICTIM_FILLING = 4
VICTIM_IN_USE = 5
STALE_GENERATION = 6
NOT_FILLING = 7

REASONS = {
    BAD_SLOT: "the slot number is out of range",
    BAD_EXPERT: "the expert number is out of range",
    ALREADY_HELD: "the expert already has a slot (READY or FILLING)",
    VICTIM_FILLING: "the victim's slot is still FILLING",
    VICTIM_IN_USE: "the victim's slot is being read",
    STALE_GENERATION: "the copy belongs to an older generation of the slot",
    NOT_FILLING: "the slot is not FILLING",
}


class Ledger(NamedTuple):
    """State of the slot pool. Experts are flat keys `layer * experts + expert`.

    slot_expert int32 [slots]: key or -1; slot_state int8 [slots]; slot_readers int32 [slots];
    slot_generation int64 [slots + staging]: bumped by every fill (staging buffers come after the
    slots);
    expert_slot int32 [layers * experts]: slot of an expert that is READY or FILLING, else -1;
    free_from int64 [1]: no slot below it is FREE (slots never become FREE again), where searches
    begin; view_digest uint64 [1]: kept by begin_fill and publish.
    best_missing float64 [layers]: highest utility of a layer's experts without a slot, computed at
    utility version missing_version int64 [layers] of the policy's state; -1 where it has to be
    computed anew, since a fill changed who has a slot.
    lowest_slot int32 [layers]: the READY slot of a layer's experts with the lowest (utility, stamp,
    slot), or -1; lowest_utility float64 [layers]: its utility; both at lowest_version int64
    [layers], likewise.
    """

    slot_expert: npt.NDArray[np.int32]
    slot_state: npt.NDArray[np.int8]
    slot_readers: npt.NDArray[np.int32]
    slot_generation: npt.NDArray[np.int64]
    expert_slot: npt.NDArray[np.int32]
    free_from: npt.NDArray[np.int64]
    view_digest: npt.NDArray[np.uint64]
    best_missing: npt.NDArray[np.float64]
    missing_version: npt.NDArray[np.int64]
    lowest_slot: npt.NDArray[np.int32]
    lowest_utility: npt.NDArray[np.float64]
    lowest_version: npt.NDArray[np.int64]


def new_ledger(layers: int, experts: int, slots: int, staging: int) -> Ledger:
    """An empty pool: every slot FREE, nothing resident."""
    return Ledger(
        np.full(slots, NOWHERE, np.int32),
        np.zeros(slots, np.int8),
        np.zeros(slots, np.int32),
        np.zeros(slots + staging, np.int64),
        np.full(layers * experts, NOWHERE, np.int32),
        np.zeros(1, np.int64),
        np.zeros(1, np.uint64),
        np.zeros(layers, np.float64),
        np.full(layers, -1, np.int64),
        np.full(layers, NOWHERE, np.int32),
        np.zeros(layers, np.float64),
        np.full(layers, -1, np.int64),
    )


@inlined
def word(slot, expert, state):
    """64 bits, well mixed, for `slot` holding `expert` in `state` (FILLING or READY)."""
    mixed = (
        np.uint64(slot) * np.uint64(0x9E3779B97F4A7C15)
        + np.uint64(expert) * np.uint64(4)
        + np.uint64(state)
    )
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@inner
def begin_fill(ledger, expert, slot):
    """Give `slot` to `expert` (state FILLING, next generation). Returns OK or the reason code of
    the refusal."""
    if slot < 0 or slot >= ledger.slot_state.shape[0]:
        return BAD_SLOT
    if expert < 0 or expert >= ledger.expert_slot.shape[0]:
        return BAD_EXPERT
    if ledger.expert_slot[expert] != NOWHERE:
        return ALREADY_HELD
    if ledger.slot_state[slot] == FILLING:
        return VICTIM_FILLING
    if ledger.slot_readers[slot] > 0:
        return VICTIM_IN_USE
    experts = ledger.expert_slot.shape[0] // ledger.missing_version.shape[0]
    ledger.missing_version[expert // experts] = -1
    old = ledger.slot_expert[slot]
    if old != NOWHERE:
        ledger.missing_version[old // experts] = -1
        ledger.lowest_version[old // experts] = -1
        ledger.expert_slot[old] = NOWHERE
        ledger.view_digest[0] ^= word(slot, old, READY)
    ledger.view_digest[0] ^= word(slot, expert, FILLING)
    ledger.slot_expert[slot] = expert
    ledger.slot_state[slot] = FILLING
    ledger.slot_generation[slot] += 1
    ledger.expert_slot[expert] = slot
    while (
        ledger.free_from[0] < ledger.slot_state.shape[0]
        and ledger.slot_state[ledger.free_from[0]] != FREE
    ):
        ledger.free_from[0] += 1
    return OK


@inner
def publish(ledger, slot, generation):
    """A copy has landed: the slot becomes READY. Returns OK or the reason code of the refusal."""
    if slot < 0 or slot >= ledger.slot_state.shape[0]:
        return BAD_SLOT
    if ledger.slot_generation[slot] != generation:
        return STALE_GENERATION
    if ledger.slot_state[slot] != FILLING:
        return NOT_FILLING
    ledger.slot_state[slot] = READY
    expert = ledger.slot_expert[slot]
    experts = ledger.expert_slot.shape[0] // ledger.lowest_version.shape[0]
    ledger.lowest_version[expert // experts] = -1
    ledger.view_digest[0] ^= word(slot, expert, FILLING) ^ word(slot, expert, READY)
    return OK


@inlined
def is_ready(ledger, expert):
    """True if the expert (flat key) is resident."""
    slot = ledger.expert_slot[expert]
    return slot != NOWHERE and ledger.slot_state[slot] == READY


@inner
def copies_in_flight(ledger):
    """Number of slots whose copy has been issued and not yet published."""
    slot_state = ledger.slot_state
    filling = 0
    for slot in range(slot_state.shape[0]):
        filling += slot_state[slot] == FILLING
    return filling


@inner
def release_readers(ledger):
    """The layer is over: nothing is read any more (one layer runs at a time)."""
    ledger.slot_readers[:] = 0


@inner
def digest(ledger):
    """64-bit hash of (slot, expert, state) of all slots: equal digests, equal views. Kept by
    begin_fill and publish; `count_digest` computes it anew."""
    return ledger.view_digest[0]


@inner
def count_digest(ledger):
    """The digest from the states alone, as the exclusive or of all words; FREE slots have none."""
    value = np.uint64(0)
    for slot in range(ledger.slot_state.shape[0]):
        if ledger.slot_state[slot] != FREE:
            value ^= word(slot, ledger.slot_expert[slot], ledger.slot_state[slot])
    return value
