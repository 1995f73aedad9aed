"""Random and degenerate instances of the assignment program, and a brute force that knows nothing
of classes or orders."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from policies.balancers.assignment import MISSING, RESIDENT, UNDER_WAY, solve_assignment

NO_NODE_LIMIT = 1 << 60


class Instance(NamedTuple):
    """One layer. kind, rows int64 [experts]; cpu_ns, gpu_ns int64 [rows + 1] by activation
    count."""

    kind: np.ndarray
    rows: np.ndarray
    early: bool
    cpu_ns: np.ndarray
    gpu_ns: np.ndarray
    gpu_start_ns: int
    link_free_ns: int
    copy_ns: int
    cpu_extra_ns: int
    copies_allowed: int

    @property
    def forced(self) -> np.ndarray:
        """bool [experts]: experts that must stay on the GPU."""
        return (self.kind == RESIDENT) & self.early


def instance(seed: int, most: int = 14) -> Instance:
    """Zero costs, ties, one expert, a busy link and no copies at all come up often."""
    random = np.random.default_rng(seed)
    experts = int(random.choice([1, 2, *range(3, most + 1)]))
    top = int(random.integers(1, 6))
    mix = random.dirichlet(random.choice([0.3, 1.0, 5.0], 3))
    kind = random.choice([RESIDENT, UNDER_WAY, MISSING], experts, p=mix)
    cpu_step = int(random.choice([0, 1, 10, 145]))
    gpu_step = int(random.choice([0, 1, 20, 100]))
    early = bool(random.random() < 0.4)
    return Instance(
        kind,
        random.integers(1, top + 1, experts),
        early,
        np.concatenate([[0], np.cumsum(random.integers(0, cpu_step + 1, top))]).astype(np.int64),
        np.concatenate([[0], np.cumsum(random.integers(0, gpu_step + 1, top))]).astype(np.int64),
        -int(random.integers(0, 30)) if early else 0,
        int(random.choice([0, 0, 50, 400])),
        int(random.choice([1, 10, 90, 380])),
        int(random.choice([0, 15])),
        int(random.choice([0, 1, 2, most, most])),
    )


def class_arrays(one: Instance) -> tuple[np.ndarray, ...]:
    """(kind, rows, available, forced) int64 [classes], in the order that the solvers want."""
    pairs = sorted(zip(one.kind.tolist(), (-one.rows).tolist(), strict=True))
    keys = sorted(set(pairs))
    kind = np.array([key[0] for key in keys], np.int64)
    rows = np.array([-key[1] for key in keys], np.int64)
    available = np.array([pairs.count(key) for key in keys], np.int64)
    forced = np.where((kind == RESIDENT) & one.early, available, 0)
    return kind, rows, available, forced


def physics(one: Instance) -> tuple[int, int, int, int, int]:
    """The scalars of the program in the solvers' order."""
    return (
        one.gpu_start_ns, one.link_free_ns, one.copy_ns, one.cpu_extra_ns, one.copies_allowed,
    )  # fmt: skip


def solve(one: Instance) -> tuple[int, int, np.ndarray]:
    """Exact search: (join, copies, members of each class on the GPU)."""
    kind, rows, available, forced = class_arrays(one)
    chosen = np.zeros(len(kind), np.int64)
    join, copies, _ = solve_assignment(
        kind, available, forced, one.cpu_ns[rows], one.gpu_ns[rows], *physics(one), NO_NODE_LIMIT,
        chosen,
    )  # fmt: skip
    return int(join), int(copies), chosen


def play(one: Instance, on_gpu: tuple[bool, ...], order: tuple[int, ...]) -> int:
    """Join of one assignment with its new copies issued in `order`, event by event."""
    gpu, link, cpu = one.gpu_start_ns, one.link_free_ns, 0
    for expert, chosen in enumerate(on_gpu):
        if not chosen:
            cpu += int(one.cpu_ns[one.rows[expert]])
        elif one.kind[expert] == RESIDENT:
            gpu += int(one.gpu_ns[one.rows[expert]])
    for expert, chosen in enumerate(on_gpu):
        if chosen and one.kind[expert] == UNDER_WAY:
            gpu = max(gpu, one.link_free_ns) + int(one.gpu_ns[one.rows[expert]])
    for expert in order:
        link += one.copy_ns
        gpu = max(gpu, link) + int(one.gpu_ns[one.rows[expert]])
    return max(gpu, cpu + one.cpu_extra_ns) if cpu else gpu


def brute_force(one: Instance) -> tuple[int, int]:
    """(join, copies) over every subset and every order of its copies."""
    best = None
    for on_gpu in itertools.product([False, True], repeat=len(one.kind)):
        if any(must and not chosen for must, chosen in zip(one.forced, on_gpu, strict=True)):
            continue
        copied = [e for e, chosen in enumerate(on_gpu) if chosen and one.kind[e] == MISSING]
        if len(copied) > one.copies_allowed:
            continue
        for order in itertools.permutations(copied):
            found = (play(one, on_gpu, order), len(copied))
            if best is None or found < best:
                best = found
    assert best is not None
    return best
