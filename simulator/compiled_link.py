"""The link of the compiled engine as recurrences: when each copy begins and lands, what has landed
by a time, and how far the CPU gets beside a busy link.

    begin = max(issue, landing of the copy before, staging buffer read);  landing = begin + duration
"""

from __future__ import annotations

from policies.compile import inner
from policies.decision import STREAMED
from simulator.compiled_state import (
    COPIES,
    COPY_BEGIN,
    COPY_EXPERT,
    COPY_GENERATION,
    COPY_ID,
    COPY_ISSUE,
    COPY_KIND,
    COPY_LANDING,
    COPY_LAYER,
    COPY_PASS,
    COPY_SLOT,
    LINK_FREE,
    NUMBER,
    ON_LINK,
    PASS_INDEX,
    QUEUE_HEAD,
    QUEUE_LENGTH,
    SLOT_LANDING,
    SLOT_NUMBER,
)

FULL_RATE = 1024


@inner
def issue_copy(
    clock, copies, slot_copy, queue, expert, slot, generation, kind, layer, issue_ns, buffer_ns,
    duration_ns,
):  # fmt: skip
    """Put a copy on the link at `issue_ns`; it may not begin before `buffer_ns`. Returns its
    landing."""
    begin_ns = max(issue_ns, clock[LINK_FREE], buffer_ns)
    landing_ns = begin_ns + duration_ns
    clock[LINK_FREE] = landing_ns
    place = clock[COPIES]
    number = clock[NUMBER]
    clock[COPIES] += 1
    clock[NUMBER] += 1
    copies[place, COPY_ID] = number
    copies[place, COPY_EXPERT] = expert
    copies[place, COPY_SLOT] = slot
    copies[place, COPY_GENERATION] = generation
    copies[place, COPY_KIND] = kind
    copies[place, COPY_PASS] = clock[PASS_INDEX]
    copies[place, COPY_LAYER] = layer
    copies[place, COPY_ISSUE] = issue_ns
    copies[place, COPY_BEGIN] = begin_ns
    copies[place, COPY_LANDING] = landing_ns
    if kind != STREAMED:
        slot_copy[slot, SLOT_NUMBER] = number
        slot_copy[slot, SLOT_LANDING] = landing_ns
        queue[(clock[QUEUE_HEAD] + clock[QUEUE_LENGTH]) % queue.shape[0]] = slot
        clock[QUEUE_LENGTH] += 1
    return landing_ns


@inner
def take_landed(clock, queue, slot_copy, slot_generation, snapshot_ns, slots, generations):
    """Fill `slots` and `generations` with the copies that landed by `snapshot_ns` and were not
    taken before. Returns their number."""
    landed = 0
    while clock[QUEUE_LENGTH] > 0:
        slot = queue[clock[QUEUE_HEAD]]
        if slot_copy[slot, SLOT_LANDING] > snapshot_ns:
            break
        slots[landed] = slot
        generations[landed] = slot_generation[slot]
        landed += 1
        clock[QUEUE_HEAD] = (clock[QUEUE_HEAD] + 1) % queue.shape[0]
        clock[QUEUE_LENGTH] -= 1
    return landed


@inner
def cpu_end(clock, copies, begin_ns, work_ns, rate):
    """First ns with 1024 * idle + rate * busy >= 1024 * work, counted from `begin_ns`; every copy
    that begins before it must be in `copies`."""
    left = FULL_RATE * work_ns
    now_ns = begin_ns
    place = clock[ON_LINK]
    while place < clock[COPIES] and copies[place, COPY_LANDING] <= begin_ns:
        place += 1
    clock[ON_LINK] = place
    while place < clock[COPIES]:
        idle_ns = max(0, copies[place, COPY_BEGIN] - now_ns)
        needed_ns = (left + FULL_RATE - 1) // FULL_RATE
        if needed_ns <= idle_ns:
            return now_ns + needed_ns
        left -= FULL_RATE * idle_ns
        now_ns += idle_ns
        busy_ns = copies[place, COPY_LANDING] - now_ns
        needed_ns = (left + rate - 1) // rate
        if needed_ns <= busy_ns:
            return now_ns + needed_ns
        left -= rate * busy_ns
        now_ns += busy_ns
        place += 1
    return now_ns + (left + FULL_RATE - 1) // FULL_RATE
