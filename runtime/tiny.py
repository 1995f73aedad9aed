"""Tiny random checkpoints, as Hugging Face directories, for tests and for quick trials.

Target and draft share embedding and output matrix, and their layers add little to them, so that the
draft is right often enough for accepted and rejected windows of every length to occur.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

Weights = dict[str, torch.Tensor]


@dataclass(frozen=True)
class TinyShape:
    """Sizes of a tiny pair.

    dense_layers: layers of the target without experts; shards: number of weight files;
    strength: size of what a layer adds, relative to the embedding; the draft's layers are its own.
    """

    vocabulary: int = 64
    hidden: int = 32
    layers: int = 3
    experts: int = 8
    top_k: int = 2
    expert_width: int = 24
    heads: int = 2
    key_heads: int = 1
    head_dim: int = 16
    draft_layers: int = 1
    max_positions: int = 512
    dense_layers: tuple[int, ...] = ()
    end_token: int | None = None
    shards: int = 1
    strength: float = 0.5


def make_tiny_pair(
    path: str | Path, seed: int = 0, shape: TinyShape | None = None
) -> tuple[Path, Path]:
    """Write and return `path`/target and `path`/draft; equal seed and shape give equal bytes."""
    shape = shape or TinyShape()
    generator = torch.Generator().manual_seed(seed)
    shared = {
        "model.embed_tokens.weight": torch.randn(
            shape.vocabulary, shape.hidden, generator=generator
        ),
        "lm_head.weight": _matrix(generator, shape.vocabulary, shape.hidden, 2.0),
    }
    moe = [layer not in shape.dense_layers for layer in range(shape.layers)]
    target = shared | _layers(generator, shape, moe)
    draft = shared | _layers(generator, shape, [False] * shape.draft_layers)
    folders = Path(path) / "target", Path(path) / "draft"
    for folder, weights, config in zip(
        folders, (target, draft), (_target_config(shape), _draft_config(shape)), strict=True
    ):
        folder.mkdir(parents=True, exist_ok=True)
        _write_weights(folder, weights, shape.shards)
        (folder / "config.json").write_text(json.dumps(config, indent=1))
        (folder / "tokenizer.json").write_text(json.dumps(_tokenizer(shape.vocabulary), indent=1))
    return folders


def _layers(generator: torch.Generator, shape: TinyShape, moe: list[bool]) -> Weights:
    weights: Weights = {"model.norm.weight": torch.ones(shape.hidden)}
    for layer, routed in enumerate(moe):
        prefix = f"model.layers.{layer}."
        part = _attention(generator, shape)
        for name in ("input_layernorm", "post_attention_layernorm"):
            part[f"{name}.weight"] = torch.ones(shape.hidden)
        if routed:
            part["mlp.gate.weight"] = _matrix(generator, shape.experts, shape.hidden, 2.0)
        for expert in range(shape.experts if routed else 1):
            block = f"mlp.experts.{expert}." if routed else "mlp."
            part |= _feed_forward(generator, shape, block)
        weights |= {prefix + name: tensor for name, tensor in part.items()}
    return weights


def _attention(generator: torch.Generator, shape: TinyShape) -> Weights:
    queries, keys = shape.heads * shape.head_dim, shape.key_heads * shape.head_dim
    return {
        "self_attn.q_proj.weight": _matrix(generator, queries, shape.hidden),
        "self_attn.k_proj.weight": _matrix(generator, keys, shape.hidden),
        "self_attn.v_proj.weight": _matrix(generator, keys, shape.hidden),
        "self_attn.o_proj.weight": _matrix(generator, shape.hidden, queries, shape.strength),
        "self_attn.q_norm.weight": torch.ones(shape.head_dim),
        "self_attn.k_norm.weight": torch.ones(shape.head_dim),
    }


def _feed_forward(generator: torch.Generator, shape: TinyShape, prefix: str) -> Weights:
    width, hidden = shape.expert_width, shape.hidden
    return {
        f"{prefix}gate_proj.weight": _matrix(generator, width, hidden),
        f"{prefix}up_proj.weight": _matrix(generator, width, hidden),
        f"{prefix}down_proj.weight": _matrix(generator, hidden, width, shape.strength),
    }


def _matrix(generator: torch.Generator, rows: int, columns: int, gain: float = 1.0) -> torch.Tensor:
    """Random [rows, columns] that keeps the size of what it multiplies, times `gain`."""
    return torch.randn(rows, columns, generator=generator) * (gain / math.sqrt(columns))


def _write_weights(folder: Path, weights: Weights, shards: int) -> None:
    from safetensors.torch import save_file

    if shards == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names, index = sorted(weights), {}
    for number in range(shards):
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        part = {name: weights[name] for name in names[number::shards]}
        save_file(part, folder / file, metadata={"format": "pt"})
        index |= dict.fromkeys(part, file)
    content = {"metadata": {}, "weight_map": index}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content, indent=1))


def _common_config(shape: TinyShape) -> dict[str, Any]:
    return {
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.expert_width,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_heads,
        "head_dim": shape.head_dim,
        "max_position_embeddings": shape.max_positions,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "eos_token_id": shape.end_token,
        "bos_token_id": None,
        "torch_dtype": "float32",
    }


def _target_config(shape: TinyShape) -> dict[str, Any]:
    return _common_config(shape) | {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "num_hidden_layers": shape.layers,
        "num_experts": shape.experts,
        "num_experts_per_tok": shape.top_k,
        "moe_intermediate_size": shape.expert_width,
        "mlp_only_layers": list(shape.dense_layers),
        "decoder_sparse_step": 1,
        "norm_topk_prob": True,
    }


def _draft_config(shape: TinyShape) -> dict[str, Any]:
    return _common_config(shape) | {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "num_hidden_layers": shape.draft_layers,
    }


def _tokenizer(vocabulary: int) -> dict[str, Any]:
    """Token n is the word "w<n>"; words are separated by spaces."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {f"w{token}": token for token in range(vocabulary)},
            "unk_token": "w0",
        },
    }
