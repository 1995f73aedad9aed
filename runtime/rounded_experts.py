"""The plain model whose experts have the values that int8 storage gives back: what an engine with
experts=int8 must equal.
"""

import torch
from torch import nn

from runtime.expert_names import ExpertNames
from runtime.int8 import rounded


def round_experts(modules: list[nn.Module], names: ExpertNames) -> None:
    """Replace the matrices of experts modules of transformers, in place."""
    with torch.no_grad():
        for experts in modules:
            for stacked in (experts.gate_up_proj, experts.down_proj):
                for one in stacked:  # type: ignore[union-attr]
                    outputs_first = one.T if names.transposed else one
                    outputs_first.copy_(rounded(outputs_first))
