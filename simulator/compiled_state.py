"""State of the compiled engine between two passes, and the rules of a run, as arrays and numbers.

The engine's loop is compiled code that stops between passes, when its log buffers are full or the
request is over. All that it needs to go on is here. No physics.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from policies.observation import HORIZON

# Entries of `clock`.
NOW = 0  # end of the last pass
HOST_FREE = 1  # end of the host's last decision
LINK_FREE = 2  # landing of the last copy
COPIES = 3  # rows used in `copies`
ON_LINK = 4  # first row of `copies` that may still be on its way when the CPU begins next
NUMBER = 5  # copies issued since the run began
LANDED = 6  # copies into slots published since the run began
QUEUE_HEAD = 7  # oldest entry of `queue`
QUEUE_LENGTH = 8
PASS_INDEX = 9  # passes begun since the run began
START = 10  # start of the next pass, as an offset in the request
CLOCK_SIZE = 11

# Columns of `copies`.
COPY_ID = 0
COPY_EXPERT = 1
COPY_SLOT = 2
COPY_GENERATION = 3
COPY_KIND = 4
COPY_PASS = 5
COPY_LAYER = 6
COPY_ISSUE = 7
COPY_BEGIN = 8
COPY_LANDING = 9
COPY_COLUMNS = 10

# Entries of `times`, of one layer.
GPU_BEGIN = 0
GPU_END = 1
CPU_BEGIN = 2
CPU_END = 3
JOIN = 4
TIMES = 5

# Columns of `slot_copy`.
SLOT_NUMBER = 0
SLOT_LANDING = 1


class Rules(NamedTuple):
    """Settings of a run. `gamma`: largest window; `only_gamma`: the only one, or -1; `slots`,
    `staging`: pool and buffers; `early`, `serial`: launch and lanes; `layer_ns`, `step_ns`: price
    of the policy's needs per layer and per draft step; `request`, `warmup`: of the passes at hand;
    `horizon`: predictions shown; `tokens_shown`: drafted tokens are shown."""

    gamma: int
    slots: int
    staging: int
    early: bool
    serial: bool
    layer_ns: int
    step_ns: int
    request: int
    warmup: bool
    horizon: int
    only_gamma: int
    tokens_shown: bool


class Machine(NamedTuple):
    """clock int64 [CLOCK_SIZE]; copies int64 [capacity, COPY_COLUMNS] in issue order, of which the
    first may be over; slot_copy int64 [slots, 2]: number and landing of the copy in each slot;
    queue int64 [slots + 1]: ring of slots whose copies are not published yet, in issue order;
    buffer_read int64 [staging + 1]: when the expert in each staging buffer had been computed."""

    clock: npt.NDArray[np.int64]
    copies: npt.NDArray[np.int64]
    slot_copy: npt.NDArray[np.int64]
    queue: npt.NDArray[np.int64]
    buffer_read: npt.NDArray[np.int64]


def new_machine(slots: int, staging: int, copies: int) -> Machine:
    """Idle lanes at 0 ns; room for `copies` copies."""
    return Machine(
        np.zeros(CLOCK_SIZE, np.int64),
        np.zeros((copies, COPY_COLUMNS), np.int64),
        np.zeros((slots, 2), np.int64),
        np.zeros(slots + 1, np.int64),
        np.zeros(staging + 1, np.int64),
    )


class Scratch(NamedTuple):
    """Where the loop puts the layer at hand: row_experts int32 [R, K], row_weights float64 [R, K],
    row_predicted int32 [HORIZON, R, K] for passes of up to R rows; landed_slots,
    landed_generations int64 [slots]; demand_gpu_ns, places, numbers, landings int64 [experts];
    times int64 [TIMES]."""

    row_experts: npt.NDArray[np.int32]
    row_weights: npt.NDArray[np.float64]
    row_predicted: npt.NDArray[np.int32]
    landed_slots: npt.NDArray[np.int64]
    landed_generations: npt.NDArray[np.int64]
    demand_gpu_ns: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]
    landings: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]


def new_scratch(experts: int, top_k: int, rows: int, slots: int) -> Scratch:
    """For passes of up to `rows` rows."""
    return Scratch(
        np.zeros((rows, top_k), np.int32),
        np.zeros((rows, top_k)),
        np.zeros((HORIZON, rows, top_k), np.int32),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(experts, np.int64),
        np.zeros(experts, np.int64),
        np.zeros(experts, np.int64),
        np.zeros(experts, np.int64),
        np.zeros(TIMES, np.int64),
    )


class RequestData(NamedTuple):
    """A request as the loop reads it; see traces.request_arrays. weights float64 [n, L, K] or
    [0, 0, 0]; next_layer uint16 [H, n, L, K] or [0, 0, 0, 0]."""

    begin: npt.NDArray[np.int64]
    longest: npt.NDArray[np.int64]
    gamma_limit: npt.NDArray[np.int64]
    commit_limit: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    experts: npt.NDArray[np.uint16]
    weights: npt.NDArray[np.float64]
    next_layer: npt.NDArray[np.uint16]
    first: int
