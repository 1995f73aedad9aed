"""Hands the experts of a target's MoE layers to the engine, through transformers' own registry."""

from collections.abc import Callable

import torch
from torch import nn

from runtime.expert_math import Gating
from runtime.target_model import TargetModel

IMPLEMENTATION = "offloaded"

ExpertsForward = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class LayerHook:
    """Knows which MoE layer its module is."""

    def __init__(self, layer: int, forward: ExpertsForward) -> None:
        self.layer, self.forward = layer, forward


def offloaded_experts(
    module: nn.Module, hidden: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """The experts function registered with transformers: hidden [rows, H], experts and weights
    [rows, k] -> [rows, H].
    """
    hook: LayerHook = module.layer_hook
    return hook.forward(hook.layer, hidden, experts, weights)


def connect(target: TargetModel, forward: ExpertsForward) -> None:
    """From now on `forward(layer, hidden, experts, weights)` computes the experts of `target`."""
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

    ALL_EXPERTS_FUNCTIONS.register(IMPLEMENTATION, offloaded_experts)
    for layer, experts in enumerate(target.experts):
        experts.layer_hook = LayerHook(layer, forward)  # type: ignore[assignment]
    target.module.set_experts_implementation(IMPLEMENTATION)


def gating_of(target: TargetModel) -> Gating:
    """What happens between the two matrices of an expert."""
    return target.facts.target_family.gating(target.experts[0])
