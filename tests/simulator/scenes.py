"""Small stages for the engine: a replay made of lists, a policy that follows a script, round
costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from policies.api import CPU, GPU, LayerPlan
from policies.costs import CostTable
from simulator.settings import SimulationSettings
from traces.manifest import ModelInfo
from traces.runlog import RunLog
from traces.window import Window

ROWS = 12


class ListReplay:
    """`requests[r][t]` uint16 [rows, L, K]: the rows of the pass at start t; each pass accepts
    `accepted` drafts. Prefill: `prompts[r]` uint16 [P, L, K] or None."""

    kind = "dense"
    fixed_gamma: int | None = None
    approximate = False

    def __init__(
        self,
        requests: Sequence[Sequence[Any]],
        experts: int,
        accepted: int = 0,
        prompts: Sequence[Any] | None = None,
        columns: frozenset[str] = frozenset(),
    ) -> None:
        self.requests = [[np.asarray(rows, np.uint16) for rows in one] for one in requests]
        rows, layers, top_k = self.requests[0][0].shape
        self.model = ModelInfo("scene", layers, experts, top_k, 1000)
        self.gamma_limit = rows - 1
        self.accepted = accepted
        self.columns = columns
        self.request_ids = tuple(range(len(requests)))
        self.prompts = prompts or [None] * len(requests)

    def prompt(self, request: int) -> np.ndarray:
        prompt = self.prompts[request]
        return np.zeros(0 if prompt is None else len(prompt), np.int32)

    def prompt_length(self, request: int) -> int:
        return len(self.prompt(request))

    def prefill(self, request: int) -> np.ndarray | None:
        prompt = self.prompts[request]
        return None if prompt is None else np.asarray(prompt, np.uint16)

    def first(self, request: int) -> int:
        return 0

    def end(self, request: int) -> int:
        return len(self.requests[request])

    def window(self, request: int, start: int, gamma: int) -> Window:
        experts = self.requests[request][start][: gamma + 1]
        accepted = min(self.accepted, gamma)
        weights = np.ones(experts.shape, np.float16) if "router_weights" in self.columns else None
        ahead = None
        if "next_layer_1" in self.columns:
            ahead = np.full((1, *experts.shape), 0xFFFF, np.uint16)
            ahead[0, :, :-1] = experts[:, 1:]
        return Window(
            request=request,
            start=start,
            gamma=gamma,
            tokens=np.arange(gamma + 1, dtype=np.int32) + 100,
            choices=np.zeros(gamma + 1, np.int32),
            accepted=accepted,
            committed=min(accepted + 1, self.end(request) - start),
            experts=experts,
            weights=weights,
            next_layer=ahead,
            approximate=False,
        )


class Scripted:
    """Follows `plans[pass, layer]`, `leaves[pass, layer]`, `drafts[pass, step]`; elsewhere
    residents go to the GPU and the rest to the CPU. Remembers what it saw in `views` and
    `routings`."""

    name = "scripted"

    def __init__(
        self,
        plans: dict[tuple[int, int], LayerPlan] | None = None,
        leaves: dict[tuple[int, int], tuple[Any, ...]] | None = None,
        drafts: dict[tuple[int, int], tuple[Any, ...]] | None = None,
        gammas: Sequence[int] | None = None,
        needs: frozenset[str] = frozenset(),
    ) -> None:
        self.plans, self.leaves, self.drafts = plans or {}, leaves or {}, drafts or {}
        self.gammas = gammas
        self.needs = needs
        self.views: list[tuple[str, Any]] = []
        self.routings: list[Any] = []
        self.tokens: list[int] = []
        self.resets = 0

    def parameters(self) -> dict[str, Any]:
        return {}

    def reset(self, shape: Any, costs: CostTable) -> None:
        self.shape = shape
        self.number = -1
        self.resets += 1

    def start_request(self, prompt: np.ndarray) -> None:
        pass

    def start_pass(self, last_token: int) -> int:
        self.number += 1
        return self.shape.gamma_max if self.gammas is None else self.gammas[self.number]

    def draft_step(self, step: int, token: int, view: Any) -> tuple[Any, ...]:
        self.tokens.append(token)
        return self.drafts.get((self.number, step), ())

    def enter_layer(self, routing: Any, view: Any) -> LayerPlan:
        self.routings.append(routing)
        base = routing.layer * self.shape.experts
        active = sorted({int(expert) for expert in routing.experts.ravel()})
        self.views.append(("enter", [view.ready(base + expert) for expert in active]))
        planned = self.plans.get((self.number, routing.layer))
        if planned is not None:
            return planned
        return LayerPlan({expert: GPU if view.ready(base + expert) else CPU for expert in active})

    def leave_layer(self, layer: int, view: Any) -> tuple[Any, ...]:
        return self.leaves.get((self.number, layer), ())

    def end_pass(self, accepted: int) -> None:
        pass


def round_costs(**changes: Any) -> CostTable:
    """Round numbers, all different: a copy takes 400 ns, contention halves the CPU's rate."""
    count = np.arange(ROWS + 1)
    table = CostTable(
        cpu_ns=np.where(count > 0, 700 + 300 * count, 0).astype(np.int64),
        gpu_ns=np.where(count > 0, 170 + 30 * count, 0).astype(np.int64),
        dense_ns=np.where(count > 0, 480 + 20 * count, 0).astype(np.int64),
        context_ns_per_1024=0,
        router_ns=50,
        d2h_ns=30,
        dispatch_ns=40,
        return_ns=60,
        copy_latency_ns=10,
        copy_ns=390,
        contention=512,
        draft_step_ns=700,
        pass_ns=90,
        decision_layer_ns=20,
        decision_leave_ns=7,
        decision_draft_ns=5,
        needs_ns=np.array([3, 5, 7, 11, 13], np.int64),
        expert_bytes=1000,
    )
    return table._replace(**changes)


def one_row(*layers: Sequence[int]) -> list[Any]:
    """Rows of a pass at gamma 0: the experts of each layer."""
    return [list(map(list, layers))]


def settings(**changes: Any) -> SimulationSettings:
    """Gamma 0, three slots, one staging buffer, no warm-up."""
    chosen: dict[str, Any] = {"gamma": 0, "slots": 3, "staging": 1, "warmup_requests": 0}
    return SimulationSettings(**(chosen | changes))


def layer_row(log: RunLog, layer: int, pass_index: int = 0) -> dict[str, Any]:
    """One row of the log's layers as a mapping."""
    rows = log.layers
    return dict(rows[(rows["pass_index"] == pass_index) & (rows["layer"] == layer)].iloc[0])


def times(log: RunLog, layer: int, pass_index: int = 0) -> dict[str, int]:
    """The times of a layer, with the short names of the physics."""
    names = [
        "t0",
        "t1",
        "t2",
        "gpu_begin",
        "gpu_end",
        "gpu_busy",
        "cpu_begin",
        "cpu_end",
        "cpu_busy",
        "join",
    ]
    row = layer_row(log, layer, pass_index)
    return {name: int(row[f"{name}_ns"]) for name in names}


def copies(log: RunLog) -> list[tuple[int, int, int, int]]:
    """(flat expert, issue, begin, landing) of every copy, in link order."""
    table = log.copies.sort_values("copy_id")
    columns = ("expert", "issue_ns", "begin_ns", "landing_ns")
    return list(zip(*(table[name].tolist() for name in columns), strict=True))
