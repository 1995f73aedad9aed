"""What one decision came to, as plain data: for the log, for replay, for the drivers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

DEMAND = 0
STREAMED = 1
PREFETCH = 2

# What decisions without experts or without copies share; read-only, since they are in all logs.
NO_EXPERTS = np.zeros(0, np.int32)
NO_PLACEMENT = np.zeros(0, np.int8)
NO_HITS = np.zeros(0, np.uint8)
for _shared in (NO_EXPERTS, NO_PLACEMENT, NO_HITS):
    _shared.flags.writeable = False


class StartedCopy(NamedTuple):
    """A copy that enters the link now. `slot` >= slots means staging buffer `slot - slots`; kind
    DEMAND, STREAMED, PREFETCH."""

    expert: int
    slot: int
    generation: int
    kind: int


class Decision(NamedTuple):
    """`landed`: copies into slots published since the start of the run. `view`: digest of the pool
    that the policy saw.

    active, counts int32 [a]; placement int8 [a]; hit uint8 [a] (READY at routing time), all empty
    for prefetch-only
    decisions. demand_* in plan order, slot -1 = in flight already, -2 = streamed; prefetch_*
    likewise.
    """

    view: int
    landed: int
    credits: int
    active: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    placement: npt.NDArray[np.int8]
    hit: npt.NDArray[np.uint8]
    demand_expert: npt.NDArray[np.int32]
    demand_slot: npt.NDArray[np.int32]
    prefetch_expert: npt.NDArray[np.int32]
    prefetch_slot: npt.NDArray[np.int32]
    copies: tuple[StartedCopy, ...]
