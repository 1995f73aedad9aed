"""The one state layout of all composed policies: arrays that every kernel may read and its own
part may write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

# Entries of `clock`.
PASS = 0  # passes seen since reset; the first is 0
ROWS = 1  # rows of the current pass
LAYER = 2  # layer that runs now; -1 while drafting
PASS_NS = 3  # estimated time of a whole pass, from the last one
ACCUMULATED_NS = 4  # the same, of the pass under way
UP = 5  # promotion threshold in force
DOWN = 6  # demotion threshold in force
WANTED = 7  # copies wanted since the last calibration
RETURNS = 8  # experts wanted again soon after their eviction, since the last calibration
CALIBRATED = 9  # pass of the last calibration
CLOCK_SIZE = 16

SIGNAL = 0
ESTIMATOR = 1
BALANCER = 2
MOVER = 3
PARTS = 4
PARAMETERS = 12


class Program(NamedTuple):
    """Which kernel plays each part: integer kinds, so that the compiled code is cached once for
    all policies."""

    signal: int
    estimator: int
    balancer: int
    mover: int


class State(NamedTuple):
    """utility, memory float64 [layers, experts]; stamp int64 [layers, experts]: pass of the last
    activation (-1: never);
    evicted int64 [layers, experts]: pass of the last eviction (-1: never); tau, quota int64
    [layers] (quota -1: one global pool);
    clock int64 [CLOCK_SIZE]; parameters float64 [PARTS, PARAMETERS]; levels int64 [4, 66]: scratch
    of the balancer;
    counts_to_come uint8 [passes, layers, experts] and next_use int32 of the same shape, empty
    unless clairvoyant.
    """

    utility: npt.NDArray[np.float64]
    memory: npt.NDArray[np.float64]
    stamp: npt.NDArray[np.int64]
    evicted: npt.NDArray[np.int64]
    tau: npt.NDArray[np.int64]
    quota: npt.NDArray[np.int64]
    clock: npt.NDArray[np.int64]
    parameters: npt.NDArray[np.float64]
    levels: npt.NDArray[np.int64]
    counts_to_come: npt.NDArray[np.uint8]
    next_use: npt.NDArray[np.int32]


def new_state(layers: int, experts: int) -> State:
    """Fresh state: utility 0, nothing seen, no future."""
    return State(
        np.zeros((layers, experts)),
        np.zeros((layers, experts)),
        np.full((layers, experts), -1, np.int64),
        np.full((layers, experts), -1, np.int64),
        np.ones(layers, np.int64),
        np.full(layers, -1, np.int64),
        np.zeros(CLOCK_SIZE, np.int64),
        np.zeros((PARTS, PARAMETERS)),
        np.zeros((4, 66), np.int64),
        np.zeros((0, layers, experts), np.uint8),
        np.zeros((0, layers, experts), np.int32),
    )
