"""Measures the link: copies of many sizes, alone and while the CPU computes experts."""

import random
from collections.abc import Callable, Sequence

import torch

from runtime.calibration_points import Point, point
from runtime.cpu_experts import CpuExperts
from runtime.device import COPY, Device
from runtime.expert_math import Gating
from runtime.host_arena import HostArena
from runtime.pace import Pace
from runtime.random_model import RandomModel
from runtime.worker import Job

SMALLEST, LARGEST = 4 * 1024, 64 * 1024 * 1024
AT_ONCE = 4  # copies one behind the other in a measurement: the link is never asked for one alone
ALONE, LOADED = "link", "link, CPU busy"
Tick = Callable[[str], None]


def copy_sizes(model: RandomModel) -> list[int]:
    """Doubling sizes up to 64 MiB or what the arena holds, the size of an expert among them."""
    whole, expert = model.arena.rows.numel(), model.arena.layout.expert_bytes
    top = min(LARGEST, whole // AT_ONCE)
    sizes = {SMALLEST << step for step in range(15) if SMALLEST << step <= top}
    return sorted(sizes | {expert})


def measure_link(
    model: RandomModel,
    gating: Gating,
    sizes: Sequence[int],
    repeats: int,
    order: random.Random,
    tick: Tick,
) -> list[Point]:
    """Time of one copy of each size, twice: alone, and under CPU load. In random order."""
    device, pool = model.device, model.arena.rows.view(-1)
    target = device.alloc_device((max(sizes),), torch.uint8)
    samples: dict[tuple[str, int], list[float]] = {}
    for curve in (ALONE, LOADED):
        load = _Load(model.arena, gating) if curve == LOADED else None
        plan = [size for size in sizes for _ in range(repeats)]
        order.shuffle(plan)
        try:
            for size in plan:
                if load is not None:
                    load.keep_busy()
                samples.setdefault((curve, size), []).append(_copy_ns(device, pool, target, size))
                tick(curve)
        finally:
            if load is not None:
                load.stop()
    return [point(curve, size, found) for (curve, size), found in sorted(samples.items())]


def _copy_ns(device: Device, pool: torch.Tensor, target: torch.Tensor, size: int) -> float:
    """Copies in a row, from different places of the arena."""
    stream = device.stream(COPY)
    step = (pool.numel() - size) // AT_ONCE
    events = [
        device.copy(target[:size], pool[place * step : place * step + size], stream)
        for place in range(AT_ONCE)
    ]
    device.synchronize(events[-1])
    return (device.end_ns(events[-1]) - device.begin_ns(events[0])) / AT_ONCE


class _Load:
    """Experts on the CPU lane, as long as it is asked for."""

    def __init__(self, arena: HostArena, gating: Gating) -> None:
        self._lane = CpuExperts(arena, gating, Pace(None))
        self._hidden = torch.randn(1, arena.layout.hidden).to(arena.layout.dtype)
        self._total, self._turn = arena.layout.total, 0
        self._jobs: list[Job] = []

    def keep_busy(self) -> None:
        """Some experts more, where fewer than that are queued."""
        self._jobs = [job for job in self._jobs if not job.end_ns]
        while len(self._jobs) < AT_ONCE:
            keys = [(self._turn + key) % self._total for key in range(8)]
            self._turn += len(keys)
            self._jobs.append(self._lane.submit(self._hidden, 1, keys, [[0]] * len(keys), 0))

    def stop(self) -> None:
        """Drop what is queued."""
        self._lane.stop()
