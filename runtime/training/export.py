"""Writes a trained network as a Hugging Face directory in fp16, and reads one back."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from tokenizers import Tokenizer

from runtime.training.network import Network
from runtime.training.recipe import NetworkShape
from runtime.training.tokenizer import SEPARATOR, SEPARATOR_ID


def export_network(network: Network, tokenizer: Tokenizer, folder: Path) -> None:
    """config.json, generation_config.json, model.safetensors and the tokenizer files."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, torch.Tensor] = {}
    for name, parameter in network.named_parameters():
        tensors.update(disk_tensors(name, parameter.detach(), network.shape))
    halves = {name: tensor.to(torch.float16).contiguous() for name, tensor in tensors.items()}
    # save_file would make the weights readable for their owner only.
    (folder / "model.safetensors").write_bytes(save(halves, metadata={"format": "pt"}))
    write_json(folder / "config.json", model_config(network.shape))
    ends = {"bos_token_id": SEPARATOR_ID, "eos_token_id": SEPARATOR_ID, "use_cache": True}
    write_json(folder / "generation_config.json", ends)
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": SEPARATOR,
            "eos_token": SEPARATOR,
            "model_max_length": network.shape.positions,
            "clean_up_tokenization_spaces": False,
        },
    )


def load_exported(folder: Path) -> Network:
    """The exported network in fp32, so that the shipped numbers can be measured."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    network = Network(shape_of(config)).requires_grad_(False)
    stored = {
        name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()
    }
    for name, parameter in network.named_parameters():
        wanted = disk_tensors(name, parameter, network.shape)
        parts = [stored.pop(part) for part in wanted]
        if len(parts) == 1:
            parameter.copy_(parts[0])
        elif name.endswith("gate_up_proj"):
            pairs = zip(parts[0::2], parts[1::2], strict=True)
            parameter.copy_(torch.stack([torch.cat(pair) for pair in pairs]))
        else:
            parameter.copy_(torch.stack(parts))
    if stored:
        raise ValueError(f"{folder} holds unknown tensors: {sorted(stored)[:3]}")
    return network


def disk_tensors(
    name: str, parameter: torch.Tensor, shape: NetworkShape
) -> dict[str, torch.Tensor]:
    """Tensors stored for one parameter; fused experts are stored one by one."""
    prefix = name.rsplit(".", 1)[0]
    tensors = {}
    if name.endswith("experts.gate_up_proj"):
        for expert in range(shape.experts):
            gate, up = parameter[expert].chunk(2)
            tensors[f"{prefix}.{expert}.gate_proj.weight"] = gate
            tensors[f"{prefix}.{expert}.up_proj.weight"] = up
    elif name.endswith("experts.down_proj"):
        for expert in range(shape.experts):
            tensors[f"{prefix}.{expert}.down_proj.weight"] = parameter[expert]
    else:
        tensors[name] = parameter
    return tensors


def model_config(shape: NetworkShape) -> dict[str, Any]:
    """transformers' config.json of a Qwen3-MoE (or Qwen3) model of this shape."""
    config: dict[str, Any] = {
        "architectures": ["Qwen3MoeForCausalLM" if shape.experts else "Qwen3ForCausalLM"],
        "model_type": "qwen3_moe" if shape.experts else "qwen3",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": SEPARATOR_ID,
        "eos_token_id": SEPARATOR_ID,
        "pad_token_id": None,
        "dtype": "float16",
        "head_dim": shape.head_width,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "initializer_range": 0.02,
        "intermediate_size": shape.dense_width,
        "max_position_embeddings": shape.positions,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.key_value_heads,
        "rms_norm_eps": shape.norm_epsilon,
        "rope_parameters": {"rope_theta": shape.rope_theta, "rope_type": "default"},
        "sliding_window": None,
        "tie_word_embeddings": True,
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": shape.vocabulary,
    }
    if shape.experts:
        config |= {
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "moe_intermediate_size": shape.expert_width,
            "norm_topk_prob": True,
            "num_experts_per_tok": shape.experts_per_token,
            # Published checkpoints write the first name, transformers 5 saves the second.
            "num_experts": shape.experts,
            "num_local_experts": shape.experts,
            "output_router_logits": False,
            "router_aux_loss_coef": 0.001,
        }
    else:
        config |= {
            "layer_types": ["full_attention"] * shape.layers,
            "max_window_layers": shape.layers,
        }
    return config


def shape_of(config: dict[str, Any]) -> NetworkShape:
    """The shape behind a config written by ``model_config``."""
    names = {
        "vocabulary": "vocab_size",
        "hidden": "hidden_size",
        "layers": "num_hidden_layers",
        "heads": "num_attention_heads",
        "key_value_heads": "num_key_value_heads",
        "head_width": "head_dim",
        "experts": "num_experts",
        "experts_per_token": "num_experts_per_tok",
        "expert_width": "moe_intermediate_size",
        "dense_width": "intermediate_size",
        "norm_epsilon": "rms_norm_eps",
        "positions": "max_position_embeddings",
    }
    values = {ours: config.get(theirs, 0) for ours, theirs in names.items()}
    values["rope_theta"] = config["rope_parameters"]["rope_theta"]
    assert set(values) == {field.name for field in fields(NetworkShape)}
    return NetworkShape(**values)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Sorted, indented JSON with a final newline."""
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
