"""Qwen3 and Qwen3-MoE decoders for training on a CPU, weight-compatible with transformers.

Parameter names equal those of transformers' fused in-memory modules; ``export`` splits the experts.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as functional
from torch import nn

from runtime.training.key_value_cache import KeyValueCache
from runtime.training.moe_autograd import GroupedLoop
from runtime.training.recipe import NetworkShape


class Normalisation(nn.Module):
    """Root-mean-square normalisation with a learned scale."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(x, (x.shape[-1],), self.weight, self.epsilon)


class Attention(nn.Module):
    """Grouped-query attention with normalised queries and keys and rotary positions."""

    def __init__(self, shape: NetworkShape, layer: int) -> None:
        super().__init__()
        self.shape = shape
        self.layer = layer
        queries = shape.heads * shape.head_width
        keys = shape.key_value_heads * shape.head_width
        self.q_proj = nn.Linear(shape.hidden, queries, bias=False)
        self.k_proj = nn.Linear(shape.hidden, keys, bias=False)
        self.v_proj = nn.Linear(shape.hidden, keys, bias=False)
        self.o_proj = nn.Linear(queries, shape.hidden, bias=False)
        self.q_norm = Normalisation(shape.head_width, shape.norm_epsilon)
        self.k_norm = Normalisation(shape.head_width, shape.norm_epsilon)

    def forward(
        self,
        x: torch.Tensor,
        rotation: tuple[torch.Tensor, torch.Tensor],
        cache: KeyValueCache | None,
    ) -> torch.Tensor:
        batch, tokens, _ = x.shape
        split = (batch, tokens, -1, self.shape.head_width)
        query = rotate(self.q_norm(self.q_proj(x).view(split)).transpose(1, 2), rotation)
        key = rotate(self.k_norm(self.k_proj(x).view(split)).transpose(1, 2), rotation)
        value = self.v_proj(x).view(split).transpose(1, 2)
        mask = None
        if cache is not None:
            key, value = cache.extend(self.layer, key, value)
            if tokens > 1:
                mask = torch.ones(tokens, key.shape[2], dtype=torch.bool).tril(
                    key.shape[2] - tokens
                )
        repeats = self.shape.heads // self.shape.key_value_heads
        mixed = functional.scaled_dot_product_attention(
            query,
            key.repeat_interleave(repeats, 1),
            value.repeat_interleave(repeats, 1),
            attn_mask=mask,
            is_causal=cache is None,
        )
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, tokens, -1))


class DenseBlock(nn.Module):
    """Gated feed-forward block of the draft."""

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.dense_width, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.dense_width, bias=False)
        self.down_proj = nn.Linear(shape.dense_width, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Experts(nn.Module):
    """Fused expert weights: gate_up_proj[E, 2 I, H], down_proj[E, H, I]."""

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        self.gate_up_proj = nn.Parameter(
            torch.empty(shape.experts, 2 * shape.expert_width, shape.hidden)
        )
        self.down_proj = nn.Parameter(torch.empty(shape.experts, shape.hidden, shape.expert_width))


class ExpertBlock(nn.Module):
    """Router and experts; ``router_logits`` and ``chosen`` keep the last pass for losses and logs.

    router_logits: float[B * T, E]; chosen: int64[B * T, k], both in token order.
    """

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        self.shape = shape
        self.gate = nn.Linear(shape.hidden, shape.experts, bias=False)
        self.experts = Experts(shape)
        self.router_logits = torch.empty(0)
        self.chosen = torch.empty(0, dtype=torch.long)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, self.shape.hidden)
        logits = self.gate(tokens)
        weights, chosen = logits.softmax(-1).topk(self.shape.experts_per_token, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        self.router_logits, self.chosen = logits, chosen
        flat = chosen.reshape(-1)
        order = flat.argsort(stable=True)
        ends = torch.bincount(flat, minlength=self.shape.experts).cumsum(0).tolist()
        source = order // self.shape.experts_per_token
        rows = GroupedLoop.apply(
            tokens[source], self.experts.gate_up_proj, self.experts.down_proj, ends
        )
        rows = rows * weights.reshape(-1)[order, None]
        return torch.zeros_like(tokens).index_add(0, source, rows).view_as(x)


class DecoderLayer(nn.Module):
    """Attention and feed-forward block with residual connections."""

    def __init__(self, shape: NetworkShape, layer: int) -> None:
        super().__init__()
        self.self_attn = Attention(shape, layer)
        self.mlp = ExpertBlock(shape) if shape.experts else DenseBlock(shape)
        self.input_layernorm = Normalisation(shape.hidden, shape.norm_epsilon)
        self.post_attention_layernorm = Normalisation(shape.hidden, shape.norm_epsilon)

    def forward(
        self,
        x: torch.Tensor,
        rotation: tuple[torch.Tensor, torch.Tensor],
        cache: KeyValueCache | None,
    ) -> torch.Tensor:
        x = x + self.self_attn(self.input_layernorm(x), rotation, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Backbone(nn.Module):
    """Embedding, decoder layers and final normalisation."""

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(DecoderLayer(shape, layer) for layer in range(shape.layers))
        self.norm = Normalisation(shape.hidden, shape.norm_epsilon)


class Network(nn.Module):
    """Decoder with tied embeddings; ``forward`` returns float[B, T, V] logits."""

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        self.shape = shape
        self.model = Backbone(shape)
        frequencies = shape.rope_theta ** -(torch.arange(0, shape.head_width, 2) / shape.head_width)
        angles = torch.outer(torch.arange(shape.positions).float(), frequencies).repeat(1, 2)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, tokens: torch.Tensor, cache: KeyValueCache | None = None) -> torch.Tensor:
        """tokens: int64[B, T], continuing ``cache`` when one is given."""
        start = 0 if cache is None else cache.length
        end = start + tokens.shape[1]
        rotation = (self.cosine[start:end], self.sine[start:end])
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x, rotation, cache)
        if cache is not None:
            cache.length = end
        return functional.linear(self.model.norm(x), self.model.embed_tokens.weight)

    def expert_blocks(self) -> list[ExpertBlock]:
        """The mixture-of-experts blocks in layer order (none in a dense network)."""
        return [layer.mlp for layer in self.model.layers if isinstance(layer.mlp, ExpertBlock)]


def rotate(x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Rotary position embedding of float[B, heads, T, head_width]."""
    cosine, sine = rotation
    half = x.shape[-1] // 2
    return x * cosine + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sine


def initialise(network: Network, seed: int) -> None:
    """Seeded normal weights; projections that write to the residual stream start at half size."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in network.named_parameters():
        if parameter.dim() == 1:
            continue
        if "embed_tokens" in name or name.endswith("mlp.gate.weight"):
            deviation = 0.02
        else:
            deviation = 1 / math.sqrt(parameter.shape[-1])
            if "down_proj" in name or "o_proj" in name:
                deviation *= 0.5
        nn.init.normal_(parameter, 0.0, deviation, generator=generator)
