"""Random instances of the two balancing programs, at the size of a layer of Qwen3-30B-A3B.

Times as of a desktop machine, all different for different numbers of rows: with equal ones, as in a
profile whose CPU waits for memory alone, the search has less to do.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.balancers.assignment import MISSING, RESIDENT

EXPERTS = 128
ACTIVE = 40
ROWS = 9
LEVELS = 5
COPY_NS = 382_000
HANDOVER_NS = 15_000
Ints = NDArray[np.int64]


def times_ns(fixed: int, each: int) -> Ints:
    """int64 [ROWS + 1]: time of an expert by its rows."""
    rows = np.arange(ROWS + 1, dtype=np.int64)
    return np.where(rows > 0, fixed + each * rows, 0)


CPU_NS = times_ns(100_000, 45_000)
GPU_NS = times_ns(18_000, 700)


@dataclass(frozen=True)
class ThresholdLayer:
    """Levels and residency of all experts, int64 and bool [EXPERTS]; the same counted, int64
    [LEVELS + 1]; what one layer may copy and hold."""

    levels: Ints
    resident: NDArray[np.bool_]
    members: Ints
    missing: Ints
    copies_allowed: int
    slots_allowed: int


def threshold_layer(seed: int) -> ThresholdLayer:
    """Half of the experts at level 0; a slot for each seventh."""
    random = np.random.default_rng(seed)
    levels = np.minimum(random.geometric(0.5, EXPERTS) - 1, LEVELS).astype(np.int64)
    resident = random.random(EXPERTS) < 0.17
    return ThresholdLayer(
        levels,
        resident,
        np.bincount(levels, minlength=LEVELS + 1),
        np.bincount(levels[~resident], minlength=LEVELS + 1),
        int(random.integers(0, 12)),
        int(random.integers(8, 40)),
    )


@dataclass(frozen=True)
class AssignedLayer:
    """Active experts in classes of equal ones, all int64 [classes], and the five scalars of the
    program in its order."""

    kind: Ints
    available: Ints
    forced: Ints
    cpu_ns: Ints
    gpu_ns: Ints
    physics: tuple[int, int, int, int, int]

    def each(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Kind, forced, CPU and GPU time with one entry for each expert, for PuLP."""
        repeat = [
            np.repeat(values, self.available).tolist()
            for values in (self.kind, self.cpu_ns, self.gpu_ns)
        ]
        forced = np.repeat(self.forced > 0, self.available).tolist()
        return repeat[0], forced, repeat[1], repeat[2]


def assigned_layer(seed: int, active: int = ACTIVE) -> AssignedLayer:
    """Each tenth of the residency in turn; late and early launch in turn."""
    random = np.random.default_rng(seed)
    early = bool(seed % 2)
    kind = np.where(random.random(active) < 0.1 * (seed % 10), RESIDENT, MISSING)
    rows = np.minimum(random.geometric(0.35, active), ROWS)
    keys, available = np.unique(np.stack([kind, -rows]), axis=1, return_counts=True)
    classes = keys[0].astype(np.int64)
    return AssignedLayer(
        classes,
        available.astype(np.int64),
        np.where((classes == RESIDENT) & early, available, 0).astype(np.int64),
        CPU_NS[-keys[1]],
        GPU_NS[-keys[1]],
        (
            -20_000 if early else 0,
            int(random.integers(0, 3)) * COPY_NS,
            COPY_NS,
            HANDOVER_NS,
            active,
        ),
    )
