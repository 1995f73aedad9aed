"""AdamW with weight decay on matrices only."""

from __future__ import annotations

import torch

from runtime.training.network import Network

LARGEST_GRADIENT_NORM = 1.0


def build_optimiser(network: Network, weight_decay: float) -> torch.optim.AdamW:
    """Embedding and normalisation weights are not decayed."""
    decayed, free = [], []
    for name, parameter in network.named_parameters():
        matrix = parameter.dim() > 1 and "embed_tokens" not in name
        (decayed if matrix else free).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.95), fused=True)


def apply_step(optimiser: torch.optim.Optimizer, network: Network, rate: float) -> None:
    """Clip the gradient norm, update with learning rate ``rate`` and clear the gradients."""
    torch.nn.utils.clip_grad_norm_(network.parameters(), LARGEST_GRADIENT_NORM)
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
