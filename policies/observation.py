"""What a kernel sees of one layer's routing, as preallocated arrays, and how rows become
activation counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from policies.compile import inlined

HORIZON = 3


class Observation(NamedTuple):
    """counts int32 [experts]; mass float64 [experts] (router weights summed over rows);
    predicted int32 [HORIZON, experts] (counts predicted for layers l+1..l+HORIZON);
    ready uint8 [experts]: resident at routing time, set for active experts only;
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


@inlined
def sliced(predicted):
    """The same predictions as the compiled engine hands them over, a slice of a larger array: a
    decision is then compiled once for both."""
    return predicted[:, : predicted.shape[1]]


@inlined
def observe_rows(observation, experts, weights, predicted):
    """Fill the observation from routed rows: experts int32 [rows, k], weights float64 [rows, k] or
    [0, 0],
    predicted int32 [h, rows, k] or [0, 0, 0]. Returns the first expert out of range, or -1."""
    counts, mass, ahead = observation.counts, observation.mass, observation.predicted
    active_list = observation.active
    total = counts.shape[0]
    counts[:] = 0
    mass[:] = 0.0
    ahead[:] = 0
    weighted = weights.shape[0] > 0
    rows, width = experts.shape
    for row in range(rows):
        for place in range(width):
            expert = experts[row, place]
            if expert < 0 or expert >= total:
                return expert
            counts[expert] += 1
            if weighted:
                mass[expert] += weights[row, place]
    for step in range(min(predicted.shape[0], ahead.shape[0])):
        for row in range(predicted.shape[1]):
            for place in range(predicted.shape[2]):
                expert = predicted[step, row, place]
                if 0 <= expert < total:
                    ahead[step, expert] += 1
    active = np.int64(0)
    for expert in range(total):
        active_list[active] = expert  # written over unless the expert counts: no branch to guess
        active += counts[expert] > 0
    observation.size[0] = active
    observation.size[1] = rows
    return -1
