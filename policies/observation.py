"""What a kernel sees of one layer's routing, as preallocated arrays, and how rows become
activation counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from policies.compile import kernel

HORIZON = 3


class Observation(NamedTuple):
    """counts int32 [experts]; mass float64 [experts] (router weights summed over rows);
    predicted int32 [HORIZON, experts] (counts predicted for layers l+1..l+HORIZON);
    ready uint8 [experts]: resident at routing time;
    active int32 [experts] holds the active experts, ascending, in its first `size[0]` entries;
    size int64 [2]: active, rows.
    """

    counts: npt.NDArray[np.int32]
    mass: npt.NDArray[np.float64]
    predicted: npt.NDArray[np.int32]
    ready: npt.NDArray[np.uint8]
    active: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]


def new_observation(experts: int) -> Observation:
    """Arrays for layers of `experts` experts, all zero."""
    return Observation(
        np.zeros(experts, np.int32),
        np.zeros(experts, np.float64),
        np.zeros((HORIZON, experts), np.int32),
        np.zeros(experts, np.uint8),
        np.zeros(experts, np.int32),
        np.zeros(2, np.int64),
    )


@kernel
def observe_rows(observation, experts, weights, predicted):
    """Fill the observation from routed rows: experts int32 [rows, k], weights float64 [rows, k] or
    [0, 0],
    predicted int32 [h, rows, k] or [0, 0, 0]. Returns the first expert out of range, or -1."""
    total = observation.counts.shape[0]
    observation.counts[:] = 0
    observation.mass[:] = 0.0
    observation.predicted[:] = 0
    rows, width = experts.shape
    for row in range(rows):
        for place in range(width):
            expert = experts[row, place]
            if expert < 0 or expert >= total:
                return expert
            observation.counts[expert] += 1
            if weights.shape[0] > 0:
                observation.mass[expert] += weights[row, place]
    for step in range(min(predicted.shape[0], observation.predicted.shape[0])):
        for row in range(predicted.shape[1]):
            for place in range(predicted.shape[2]):
                expert = predicted[step, row, place]
                if 0 <= expert < total:
                    observation.predicted[step, expert] += 1
    active = 0
    for expert in range(total):
        if observation.counts[expert] > 0:
            observation.active[active] = expert
            active += 1
    observation.size[0] = active
    observation.size[1] = rows
    return -1
