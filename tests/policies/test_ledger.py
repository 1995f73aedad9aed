"""Legal transitions of the slot pool: a scripted interleaving, then random sequences that keep the
invariants."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.compile import python_kernel
from policies.ledger import (
    ALREADY_HELD,
    BAD_EXPERT,
    BAD_SLOT,
    FILLING,
    FREE,
    NOT_FILLING,
    NOWHERE,
    OK,
    READY,
    STALE_GENERATION,
    VICTIM_FILLING,
    VICTIM_IN_USE,
    begin_fill,
    copies_in_flight,
    count_digest,
    digest,
    new_ledger,
    publish,
    release_readers,
)

begin_fill = python_kernel(begin_fill)
copies_in_flight = python_kernel(copies_in_flight)
count_digest = python_kernel(count_digest)
digest = python_kernel(digest)
publish = python_kernel(publish)
release_readers = python_kernel(release_readers)

A, B, C = 0, 1, 2


def invariants(ledger):
    held = [slot for slot in range(len(ledger.slot_state)) if ledger.slot_state[slot] != FREE]
    for slot in held:
        assert ledger.expert_slot[ledger.slot_expert[slot]] == slot
    assert (ledger.expert_slot >= 0).sum() == len(held)
    states = [int((ledger.slot_state == state).sum()) for state in (FREE, FILLING, READY)]
    assert sum(states) == len(ledger.slot_state)
    assert copies_in_flight(ledger) == states[1]
    assert (ledger.slot_state[: ledger.free_from[0]] != FREE).all()


def test_scripted_interleaving_accepts_and_refuses():
    ledger = new_ledger(1, 4, 2, 0)
    assert begin_fill(ledger, A, 0) == OK
    assert begin_fill(ledger, A, 1) == ALREADY_HELD
    assert begin_fill(ledger, B, 1) == OK
    assert begin_fill(ledger, C, 0) == VICTIM_FILLING
    assert publish(ledger, 0, 1) == OK
    ledger.slot_readers[0] += 1
    assert begin_fill(ledger, C, 0) == VICTIM_IN_USE
    release_readers(ledger)
    assert begin_fill(ledger, C, 0) == OK
    assert ledger.expert_slot[A] == NOWHERE
    invariants(ledger)


def test_a_stale_copy_is_not_published():
    ledger = new_ledger(1, 4, 1, 0)
    begin_fill(ledger, A, 0)
    publish(ledger, 0, 1)
    begin_fill(ledger, B, 0)
    assert publish(ledger, 0, 1) == STALE_GENERATION
    assert ledger.slot_state[0] == FILLING
    assert publish(ledger, 0, 2) == OK
    assert publish(ledger, 0, 2) == NOT_FILLING


def test_numbers_out_of_range_are_refused():
    ledger = new_ledger(1, 4, 1, 0)
    assert begin_fill(ledger, A, 1) == BAD_SLOT
    assert begin_fill(ledger, A, -1) == BAD_SLOT
    assert begin_fill(ledger, 4, 0) == BAD_EXPERT
    assert begin_fill(ledger, -1, 0) == BAD_EXPERT
    assert publish(ledger, 9, 0) == BAD_SLOT


def test_the_digest_tells_states_and_places_apart():
    seen = set()
    for expert, slot, ready in [(A, 0, False), (A, 0, True), (B, 0, True), (A, 1, True)]:
        ledger = new_ledger(1, 4, 2, 0)
        begin_fill(ledger, expert, slot)
        if ready:
            publish(ledger, slot, 1)
        seen.add(int(digest(ledger)))
    seen.add(int(digest(new_ledger(1, 4, 2, 0))))
    assert len(seen) == 5


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 9))
def test_random_sequences_keep_the_invariants(seed, slots, experts):
    random = np.random.default_rng(seed)
    ledger = new_ledger(1, experts, slots, 0)
    for _ in range(170):
        action = random.integers(4)
        slot = int(random.integers(-1, slots + 1))
        if action == 0:
            before = ledger.slot_state.copy()
            code = begin_fill(ledger, int(random.integers(-1, experts + 1)), slot)
            if code != OK:
                assert (before == ledger.slot_state).all()
        elif action == 1:
            generation = int(ledger.slot_generation[slot]) if 0 <= slot < slots else 0
            publish(ledger, slot, generation - int(random.integers(2)))
        elif action == 2 and 0 <= slot < slots and ledger.slot_state[slot] == READY:
            ledger.slot_readers[slot] += 1
        else:
            release_readers(ledger)
        invariants(ledger)


def test_the_kept_digest_is_that_of_the_states():
    random = np.random.default_rng(3)
    ledger = new_ledger(2, 8, 5, 0)
    for _ in range(300):
        slot, expert = int(random.integers(5)), int(random.integers(16))
        if begin_fill(ledger, expert, slot) == OK and random.random() < 0.7:
            publish(ledger, slot, ledger.slot_generation[slot])
        assert digest(ledger) == count_digest(ledger)
    assert digest(ledger) != 0
