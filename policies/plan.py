"""The plan of one decision as preallocated arrays, with the only two ways to add a copy to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from policies.compile import inner

PREFETCH_LIMIT = 16
IN_FLIGHT = -1
STAGING = -2


class Plan(NamedTuple):
    """placement int8 [experts] (api.GPU, CPU, FETCH, STREAM; 0 for inactive);
    demand_expert, demand_slot int32 [experts]: FETCH with its slot, or IN_FLIGHT (copy already on
    its way), STREAM with
    STAGING; prefetch_expert, prefetch_slot int32 [PREFETCH_LIMIT]; size int64 [2]: demand copies,
    prefetches;
    taken uint8 [slots]: slots that this plan reads or fills; pending int64 [layers]: slots it adds
    to a layer;
    refusal int64 [3]: reason code, expert, slot of the first illegal entry; credits int64 [1].
    Scratch of the mover: candidate_key int64, candidate_value float64, candidate_rank int64
    [PREFETCH_LIMIT]; of the balancer: order int64 [experts].
    """

    placement: npt.NDArray[np.int8]
    demand_expert: npt.NDArray[np.int32]
    demand_slot: npt.NDArray[np.int32]
    prefetch_expert: npt.NDArray[np.int32]
    prefetch_slot: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]
    taken: npt.NDArray[np.uint8]
    pending: npt.NDArray[np.int64]
    refusal: npt.NDArray[np.int64]
    credits: npt.NDArray[np.int64]
    candidate_key: npt.NDArray[np.int64]
    candidate_value: npt.NDArray[np.float64]
    candidate_rank: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]


def new_plan(layers: int, experts: int, slots: int) -> Plan:
    """An empty plan for these sizes."""
    return Plan(
        np.zeros(experts, np.int8),
        np.zeros(experts, np.int32),
        np.zeros(experts, np.int32),
        np.zeros(PREFETCH_LIMIT, np.int32),
        np.zeros(PREFETCH_LIMIT, np.int32),
        np.zeros(2, np.int64),
        np.zeros(slots, np.uint8),
        np.zeros(layers, np.int64),
        np.zeros(3, np.int64),
        np.zeros(1, np.int64),
        np.zeros(PREFETCH_LIMIT, np.int64),
        np.zeros(PREFETCH_LIMIT, np.float64),
        np.zeros(PREFETCH_LIMIT, np.int64),
        np.zeros(experts, np.int64),
    )


@inner
def clear_plan(plan, credits):
    """Start a decision with `credits` prefetches allowed."""
    plan.placement[:] = 0
    plan.size[:] = 0
    plan.taken[:] = 0
    plan.pending[:] = 0
    plan.refusal[:] = 0
    plan.credits[0] = credits


@inner
def add_demand(plan, expert, slot):
    """Append a demand copy of `expert` (flat key); `slot` may be IN_FLIGHT or STAGING."""
    place = plan.size[0]
    plan.demand_expert[place] = expert
    plan.demand_slot[place] = slot
    plan.size[0] += 1
    if slot >= 0:
        plan.taken[slot] = 1


@inner
def add_prefetch(plan, expert, slot):
    """Append a prefetch of `expert` (flat key) into `slot`; the caller has checked
    `plan.credits`."""
    place = plan.size[1]
    plan.prefetch_expert[place] = expert
    plan.prefetch_slot[place] = slot
    plan.size[1] += 1
    plan.credits[0] -= 1
    plan.taken[slot] = 1


@inner
def prefetches(plan, expert):
    """True if the plan already prefetches `expert` (flat key)."""
    found = False
    for place in range(plan.size[1]):
        found = found or plan.prefetch_expert[place] == expert
    return found
