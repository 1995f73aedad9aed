"""The exact enumeration of the threshold program against PuLP and against plain brute force."""

import numpy as np
import pytest

from policies.balancers.threshold import solve_threshold
from policies.balancers.threshold_reference import solve_threshold_reference


def instance(seed):
    """Random and degenerate programs: ties, zero costs, no copies, no slots, empty levels."""
    random = np.random.default_rng(seed)
    top = int(random.integers(1, 7))
    experts = int(random.integers(1, 13))
    levels = random.integers(0, top + 1, experts)
    resident = random.random(experts) < random.choice([0.0, 0.3, 1.0])
    step = int(random.choice([0, 1, 7, 145]))
    cpu = np.concatenate([[0], np.cumsum(random.integers(0, step + 1, top))]).astype(np.int64)
    gpu = np.concatenate([[0], np.cumsum(random.integers(0, step // 4 + 1, top))]).astype(np.int64)
    copies = int(random.integers(0, experts + 1))
    slots = int(random.integers(0, experts + 1))
    return top, levels, resident, cpu, gpu, copies, slots


def by_level(top, levels, resident):
    members = np.bincount(levels, minlength=top + 1).astype(np.int64)
    missing = np.bincount(levels[~resident], minlength=top + 1).astype(np.int64)
    return members, missing


def brute_force(top, levels, resident, cpu, gpu, copies, slots):
    best = None
    for tau in range(top + 1, 0, -1):
        hot = levels >= tau
        if (hot & ~resident).sum() > copies or hot.sum() > slots:
            continue
        value = max(cpu[levels[~hot]].sum(), gpu[levels[hot]].sum())
        if best is None or value < best[1]:
            best = (tau, int(value))
    return best


@pytest.mark.parametrize("seed", range(0, 20_000, 1_000))
def test_enumeration_equals_brute_force(seed):
    for offset in range(1_000):
        top, levels, resident, cpu, gpu, copies, slots = instance(seed + offset)
        members, missing = by_level(top, levels, resident)
        found = solve_threshold(members, missing, cpu, gpu, copies, slots)
        assert found == brute_force(top, levels, resident, cpu, gpu, copies, slots), seed + offset


def test_enumeration_equals_the_integer_program_on_1000_instances():
    for seed in range(1_000):
        top, levels, resident, cpu, gpu, copies, slots = instance(seed)
        members, missing = by_level(top, levels, resident)
        found = solve_threshold(members, missing, cpu, gpu, copies, slots)
        reference = solve_threshold_reference(levels, resident, cpu, gpu, copies, slots, top)
        assert found == reference, f"instance {seed}"
