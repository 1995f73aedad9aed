"""Hands the experts of a target's MoE layers to the engine, through transformers' own registry."""

from collections.abc import Callable

import torch
from torch import nn

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
    for layer, number in enumerate(target.facts.moe_layers):
        target.module.model.layers[number].mlp.experts.layer_hook = LayerHook(layer, forward)
    target.module.set_experts_implementation(IMPLEMENTATION)


def activation_of(target: TargetModel) -> Callable[[torch.Tensor], torch.Tensor]:
    """The activation between an expert's gate and its down projection."""
    first = target.module.model.layers[target.facts.moe_layers[0]].mlp.experts
    activation: Callable[[torch.Tensor], torch.Tensor] = first.act_fn
    return activation
