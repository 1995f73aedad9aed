"""Stages of a pass for the lower bound: one of drafting and head, then one per layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policies.costs import CostTable
from simulator.settings import SimulationSettings
from traces.manifest import ModelInfo
from traces.replay import Replay
from traces.window import Window


@dataclass(frozen=True)
class LayerStage:
    """`fixed_ns`: time before GPU experts; `cpu_extra_ns`: what a layer with any CPU expert takes
    on top of it besides the experts; `experts` int64 [n]: flat keys of the active experts;
    `gpu_ns`, `cpu_ns` int64 [n]: their times."""

    fixed_ns: int
    cpu_extra_ns: int
    experts: npt.NDArray[np.int64]
    gpu_ns: npt.NDArray[np.int64]
    cpu_ns: npt.NDArray[np.int64]


@dataclass(frozen=True)
class PassStages:
    """`idle_ns`: drafting and output head, when only the link works."""

    idle_ns: int
    layers: tuple[LayerStage, ...]


def layer_ns(costs: CostTable, rows: Any, start: Any, early: bool) -> tuple[Any, int]:
    """(fixed_ns, cpu_extra_ns) of a layer, see LayerStage; `rows` of the pass and its `start` may
    be arrays."""
    attention_ns = costs.context_ns_per_1024 * start // 1024
    routed_ns = costs.dense_ns[rows] + attention_ns + costs.router_ns
    handover_ns = costs.dispatch_ns + costs.return_ns
    # A lane whose experts take no time has no work, and a layer without work joins when routed.
    if costs.cpu_ns[1] == 0:
        return routed_ns, 0
    if early or costs.gpu_ns[1] == 0:
        return routed_ns, costs.d2h_ns + handover_ns
    return routed_ns + costs.d2h_ns, handover_ns


def pass_stages(window: Window, model: ModelInfo, costs: CostTable, early: bool) -> PassStages:
    """The stages of `window`. The head comes first here and last in the engines: as all heads are
    equal, that only gives the first pass of a block more time to copy."""
    fixed_ns, extra_ns = layer_ns(costs, window.gamma + 1, window.start, early)
    layers = []
    for layer in range(model.layers):
        counts = np.bincount(window.experts[:, layer].ravel(), minlength=model.experts)
        active = np.flatnonzero(counts)
        layers.append(
            LayerStage(
                int(fixed_ns),
                extra_ns,
                layer * model.experts + active,
                costs.gpu_ns[counts[active]],
                costs.cpu_ns[counts[active]],
            )
        )
    return PassStages(window.gamma * costs.draft_step_ns + costs.pass_ns, tuple(layers))


def request_stages(
    replay: Replay, request: int, costs: CostTable, settings: SimulationSettings
) -> list[PassStages]:
    """The stages of every pass of `request`, with windows of settings.gamma."""
    stages = []
    start, end = replay.first(request), replay.end(request)
    while start < end:
        window = replay.window(request, start, settings.gamma)
        stages.append(pass_stages(window, replay.model, costs, early=settings.launch == "early"))
        start += window.committed
    return stages
