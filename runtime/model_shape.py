"""ModelShape: sizes of a model that is built from random numbers, where only its speed matters."""

from dataclasses import dataclass
from typing import Any

import torch

from runtime.expert_layout import ExpertLayout
from traces.manifest import ModelInfo

HEAD_WIDTHS = (128, 64, 32, 16, 8, 4, 2, 1)
LONGEST_TEXT = 1 << 16


@dataclass(frozen=True)
class ModelShape:
    """`layers`: layers with routed experts, the only ones that are built; what a pass reads besides
    becomes one output matrix of as many bytes (`vocabulary` x `hidden`).

    `distinct`: layers with weights of their own; layer l uses those of l mod distinct. `draft_*`:
    a draft step is `draft_layers` products with square matrices of width `draft_width`.
    """

    name: str
    layers: int
    experts: int
    top_k: int
    hidden: int
    expert_width: int
    heads: int
    key_heads: int
    head_width: int
    vocabulary: int
    distinct: int
    draft_layers: int = 0
    draft_width: int = 0

    def layout(self, dtype: torch.dtype) -> ExpertLayout:
        """Experts of all layers, whether they are distinct or not."""
        return ExpertLayout(self.layers, self.experts, self.hidden, self.expert_width, dtype)

    def info(self, dtype: torch.dtype) -> ModelInfo:
        """The shape for traces and logs."""
        size = self.layout(dtype).expert_bytes
        return ModelInfo(self.name, self.layers, self.experts, self.top_k, size)


def model_shape(
    name: str,
    layers: int,
    experts: int,
    top_k: int,
    hidden: int,
    expert_width: int,
    layer_parameters: int,
    pass_parameters: int,
    key_width: int,
    distinct: int | None = None,
    draft_layers: int = 0,
    draft_parameters: int = 0,
) -> ModelShape:
    """A shape whose parts have as many parameters as the model's.

    layer_parameters: of one layer besides routed experts; pass_parameters: read once a pass;
    key_width: numbers that a token's keys take in one layer; draft_parameters: read by a draft
    step. Query heads fill up what norms, router, keys and values leave of the layer.
    """
    head_width = next(width for width in HEAD_WIDTHS if key_width % width == 0)
    key_heads = max(1, key_width // head_width)
    rest = layer_parameters - hidden * experts - 2 * hidden * key_heads * head_width
    groups = max(1, round(rest / (2 * hidden * key_heads * head_width)))
    draft_width = round((draft_parameters / draft_layers) ** 0.5) if draft_layers else 0
    return ModelShape(
        name, layers, experts, top_k, hidden, expert_width, groups * key_heads, key_heads,
        head_width, max(2, round(pass_parameters / hidden)), distinct or layers, draft_layers,
        draft_width,
    )  # fmt: skip


def transformers_config(shape: ModelShape, dtype: torch.dtype) -> Any:
    """The Qwen3-MoE config of a shape."""
    from transformers import Qwen3MoeConfig

    return Qwen3MoeConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.expert_width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        head_dim=shape.head_width,
        num_experts=shape.experts,
        num_experts_per_tok=shape.top_k,
        moe_intermediate_size=shape.expert_width,
        max_position_embeddings=LONGEST_TEXT,
        tie_word_embeddings=True,
        dtype=dtype,
    )
