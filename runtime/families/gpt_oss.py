"""gpt-oss in bf16: biased experts, stacked, transposed, gate and up alternating, clamped SwiGLU."""

import torch
from torch import nn

from runtime.expert_math import Gating
from runtime.expert_names import FUSED_WITH_BIASES, ExpertNames
from runtime.family import Family


def clamped_swiglu(experts: nn.Module) -> Gating:
    """As transformers' GptOssExperts computes it, from gate and up apart."""
    alpha, limit = float(experts.alpha), float(experts.limit)  # type: ignore[arg-type]

    def gating(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        gate = gate.clamp(max=limit)
        return (up.clamp(min=-limit, max=limit) + 1) * (gate * torch.sigmoid(gate * alpha))

    return gating


GPT_OSS = Family(
    "gpt_oss",
    "GptOssForCausalLM",
    width="intermediate_size",
    names=ExpertNames(split={}, fused=FUSED_WITH_BIASES, transposed=True, interleaved=True),
    router="router",
    gating=clamped_swiglu,
)
