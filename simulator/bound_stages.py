"""Stages of a pass for the lower bound: one of drafting and head, then one per layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from policies.costs import CostTable
from traces.manifest import ModelInfo
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


def pass_stages(window: Window, model: ModelInfo, costs: CostTable, early: bool) -> PassStages:
    """The stages of `window`. The head comes first here and last in the engines: as all heads are
    equal, that only gives the first pass of a block more time to copy."""
    attention_ns = costs.context_ns_per_1024 * window.start // 1024
    routed_ns = int(costs.dense_ns[window.gamma + 1]) + attention_ns + costs.router_ns
    fixed_ns = routed_ns if early else routed_ns + costs.d2h_ns
    cpu_ns = routed_ns + costs.d2h_ns + costs.dispatch_ns + costs.return_ns
    layers = []
    for layer in range(model.layers):
        counts = np.bincount(window.experts[:, layer].ravel(), minlength=model.experts)
        active = np.flatnonzero(counts)
        layers.append(
            LayerStage(
                fixed_ns,
                cpu_ns - fixed_ns,
                layer * model.experts + active,
                costs.gpu_ns[counts[active]],
                costs.cpu_ns[counts[active]],
            )
        )
    return PassStages(window.gamma * costs.draft_step_ns + costs.pass_ns, tuple(layers))
