"""Router losses: balanced load, and similar routing of neighbouring tokens.

The second one is why the shipped target reuses experts more than plain training would give;
the model card says so.
"""

from __future__ import annotations

import torch
import torch.nn.functional as functional

from runtime.training.network import ExpertBlock
from runtime.training.recipe import TargetRecipe


def balance_loss(block: ExpertBlock) -> torch.Tensor:
    """Load share times mean probability, summed over experts; 1 when perfectly balanced."""
    experts = block.shape.experts
    load = torch.bincount(block.chosen.reshape(-1), minlength=experts) / block.chosen.numel()
    return experts * (load * block.router_logits.softmax(-1).mean(0)).sum()


def locality_loss(block: ExpertBlock, sequences: int) -> torch.Tensor:
    """1 - cosine between centred router logits of adjacent tokens, averaged; in [0, 2].

    The batch mean per expert is removed first, so that a constant bias earns nothing.
    """
    logits = block.router_logits.view(sequences, -1, block.shape.experts)
    centred = logits - logits.mean((0, 1), keepdim=True).detach()
    centred = centred - centred.mean(-1, keepdim=True)
    return 1 - functional.cosine_similarity(centred[:, :-1], centred[:, 1:], dim=-1).mean()


def locality_weight(recipe: TargetRecipe, step: int) -> float:
    """Weight of the locality loss at ``step``: zero, a linear ramp, then constant."""
    ramp = (step - recipe.locality_first_step) / max(
        1, recipe.locality_full_step - recipe.locality_first_step
    )
    return recipe.locality_weight * min(1.0, max(0.0, ramp))
