"""What the tests of the offloading engine share: costs, forced policies, devices, engines."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from policies.api import CPU, FETCH, GPU, STREAM, Copy, LayerPlan, Routing, Shape, View
from policies.costs import CostTable
from runtime.device import COPY
from runtime.engine import OffloadedEngine
from runtime.engine_settings import EngineSettings
from runtime.expert_layout import ExpertLayout
from runtime.expert_names import (
    BIASES,
    DOWN,
    DOWN_BIAS,
    GATE,
    GATE_BIAS,
    PROJECTIONS,
    UP,
    UP_BIAS,
)
from runtime.hazards import HazardChecker
from runtime.host_arena import HostArena
from runtime.standin import StandIn
from runtime.standin_link import Link

ROWS = 64
PREFERENCES = ("GPU", "CPU", "FETCH", "STREAM", "MIXED")


def flat_costs(**changes: Any) -> CostTable:
    """A cost table with the same time for any number of rows."""
    ones = (np.arange(ROWS + 1) > 0).astype(np.int64)
    table = CostTable(
        cpu_ns=ones * 50_000, gpu_ns=ones * 5_000, dense_ns=ones * 200_000,
        context_ns_per_1024=0, router_ns=10_000, d2h_ns=10_000, dispatch_ns=5_000,
        return_ns=5_000, copy_latency_ns=1_000, copy_ns=40_000, contention=1024,
        draft_step_ns=200_000, pass_ns=100_000, decision_layer_ns=1_000, decision_leave_ns=1_000,
        decision_draft_ns=1_000, needs_ns=np.zeros(5, np.int64), expert_bytes=1,
    )  # fmt: skip
    return table._replace(**changes)


class ForcedPolicy:
    """Places every active expert as `preference` says wherever that is legal, and moves experts
    at random where it may. MIXED draws among all that is legal.
    """

    name = "forced"
    needs: frozenset[str] = frozenset()

    def __init__(self, preference: str, seed: int = 0, needs: tuple[str, ...] = ()) -> None:
        self.preference, self.seed = preference, seed
        self.needs = frozenset(needs)

    def parameters(self) -> dict[str, Any]:
        return {"preference": self.preference, "seed": self.seed}

    def reset(self, shape: Shape, costs: CostTable) -> None:
        self.shape_ = shape
        self.random_ = np.random.default_rng(self.seed)

    def start_request(self, prompt: np.ndarray) -> None:
        pass

    def start_pass(self, last_token: int) -> int:
        return self.shape_.gamma_max

    def draft_step(self, step: int, token: int, view: View) -> tuple[Copy, ...]:
        return self._prefetch(view, set())

    def leave_layer(self, layer: int, view: View) -> tuple[Copy, ...]:
        return self._prefetch(view, set())

    def end_pass(self, accepted: int) -> None:
        pass

    def enter_layer(self, routing: Routing, view: View) -> LayerPlan:
        base = routing.layer * self.shape_.experts
        active = [int(expert) for expert in np.unique(routing.experts)]
        reserved = {int(view.expert_slot[base + e]) for e in active if view.ready(base + e)}
        placement, demand = {}, []
        for expert in active:
            key = base + expert
            chosen, slot = self._choose(key, view, reserved)
            placement[expert] = chosen
            if chosen in (FETCH, STREAM):
                demand.append(Copy(key, slot))
                reserved.add(slot)
        prefetch = () if demand else self._prefetch(view, reserved)
        return LayerPlan(placement, tuple(demand), prefetch)

    def _choose(self, key: int, view: View, reserved: set[int]) -> tuple[int, int]:
        victims = self._victims(view, reserved)
        if view.ready(key):
            legal = {GPU: -1, CPU: -1}
        elif view.filling(key):
            legal = {FETCH: -1, CPU: -1}
        else:
            legal = {CPU: -1}
            if victims:
                legal[FETCH] = victims[0]
            if self.shape_.staging:
                legal[STREAM] = -1
        if self.preference == "MIXED":
            chosen = int(self.random_.choice(sorted(legal)))
        else:
            order = {
                "GPU": (GPU, FETCH, CPU),
                "CPU": (CPU,),
                "FETCH": (GPU, FETCH, CPU),
                "STREAM": (STREAM, GPU, FETCH, CPU),
            }[self.preference]
            chosen = next(kind for kind in order if kind in legal)
        return chosen, legal[chosen]

    def _victims(self, view: View, reserved: set[int]) -> list[int]:
        free = [
            slot
            for slot in range(self.shape_.slots)
            if view.slot_state[slot] != 1 and not view.slot_in_use[slot] and slot not in reserved
        ]
        return self.random_.permutation(free).tolist() if free else []

    def _prefetch(self, view: View, reserved: set[int]) -> tuple[Copy, ...]:
        if self.preference not in ("MIXED", "GPU"):
            return ()
        victims = self._victims(view, reserved)
        if self.preference == "GPU":
            victims = [slot for slot in victims if view.slot_state[slot] == 0]
        absent = np.flatnonzero(view.expert_slot < 0)
        wanted = self.random_.permutation(absent).tolist()
        pairs = zip(wanted, victims, strict=False)
        return tuple(Copy(int(e), int(s)) for e, s in pairs)[: min(view.credits, 4)]


def engine_threads() -> list[str]:
    """Names of the threads of engines and stand-ins that are alive."""
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith(("standin-", "cpu-experts"))]


def fast_standin(checker: HazardChecker | None = None, rate: float | None = None) -> StandIn:
    """A stand-in whose link has no latency, and no limit unless `rate` (bytes/s) is given."""
    return StandIn({COPY: Link(rate)}, checker)


def random_arena(layout: ExpertLayout, device: StandIn, seed: int = 0) -> HostArena:
    """An arena filled with random weights."""
    rows = device.alloc_host(layout.total * layout.row_bytes).view(layout.total, -1)
    generator = torch.Generator().manual_seed(seed)
    shapes = {
        GATE: (layout.width, layout.hidden), UP: (layout.width, layout.hidden),
        DOWN: (layout.hidden, layout.width), GATE_BIAS: (layout.width,),
        UP_BIAS: (layout.width,), DOWN_BIAS: (layout.hidden,),
    }  # fmt: skip
    for row in rows:
        for part in PROJECTIONS + (BIASES if layout.biased else ()):
            layout.store(row, part, torch.randn(shapes[part], generator=generator))
    return HostArena(layout, rows)


def tiny_engine(
    path: Path, policy: Any, device: StandIn | None = None, log: Path | None = None, **changes: Any
) -> OffloadedEngine:
    """An engine on the tiny pair in `path`; `changes` to EngineSettings(slots=6, gamma=3) and, for
    names of the cost table, one time for any number of rows.
    """
    times = {name: changes.pop(name) for name in ("cpu_ns", "gpu_ns") if name in changes}
    ones = (np.arange(ROWS + 1) > 0).astype(np.int64)
    costs = flat_costs(**{name: ones * time for name, time in times.items()})
    settings = replace(EngineSettings(slots=6, gamma=3), **changes)
    draft = path / "draft" if settings.gamma else None
    return OffloadedEngine(
        path / "target", draft, device or fast_standin(), policy, costs, settings, log
    )
