"""Tiny random checkpoints of every known family, written as transformers writes them.

The draft is a dense Qwen3 that shares vocabulary, embedding and output matrix with the target.
"""

import math
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import nn

from runtime.families import FAMILIES
from runtime.tiny import TinyShape, make_tiny_pair

EXPERTS, TOP_K, WIDTH, HIDDEN, VOCABULARY, LAYERS = 8, 2, 24, 32, 64, 3

_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 512,
    "num_experts_per_tok": TOP_K,
    "tie_word_embeddings": False,
    "eos_token_id": 5,
    "bos_token_id": None,
    "pad_token_id": None,
}
_OWN: dict[str, dict[str, Any]] = {
    "qwen3_moe": {
        "num_experts": EXPERTS, "moe_intermediate_size": WIDTH, "head_dim": 16,
        "intermediate_size": 40, "mlp_only_layers": [1], "norm_topk_prob": True,
    },
    "mixtral": {"num_local_experts": EXPERTS, "intermediate_size": WIDTH},
    "olmoe": {"num_experts": EXPERTS, "intermediate_size": WIDTH, "num_key_value_heads": 2},
    "deepseek_v2": {
        "n_routed_experts": EXPERTS, "moe_intermediate_size": WIDTH, "intermediate_size": 40,
        "first_k_dense_replace": 1, "n_shared_experts": 2, "kv_lora_rank": 16,
        "q_lora_rank": None, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 12,
        "num_key_value_heads": 2, "topk_method": "group_limited_greedy", "n_group": 4,
        "topk_group": 2, "routed_scaling_factor": 1.5,
    },
    "gpt_oss": {
        "num_local_experts": EXPERTS, "intermediate_size": WIDTH, "head_dim": 16,
        "sliding_window": 6, "swiglu_limit": 1.0,  # small, so that both clamps and windows matter
        "rope_parameters": {
            "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
            "truncate": False, "original_max_position_embeddings": 16, "rope_theta": 150000.0,
        },
    },
}  # fmt: skip


def make_tiny_family(
    path: str | Path, model_type: str, seed: int = 0, shards: int = 1, **changes: Any
) -> tuple[Path, Path]:
    """Write and return `path`/target of the family and `path`/draft. changes: to its config."""
    family = FAMILIES[model_type]
    _, draft = make_tiny_pair(path, seed, TinyShape(end_token=5, draft_layers=1))
    shutil.rmtree(Path(path) / "target")
    target = Path(path) / "target"
    model = family.module_class()
    config = model.config_class(**_COMMON | _OWN.get(model_type, {}) | changes)
    module = model(config).float().eval()
    fill_randomly(module, torch.Generator().manual_seed(seed))
    _share_ends(module, draft)
    size = sum(weight.numel() * 4 for weight in module.parameters())
    module.save_pretrained(str(target), max_shard_size=math.ceil(size / shards) + 4096)
    shutil.copy(draft / "tokenizer.json", target / "tokenizer.json")
    return target, draft


def fill_randomly(module: nn.Module, generator: torch.Generator) -> None:
    """Weights that keep the size of what they multiply, biases that matter, norms near one."""
    with torch.no_grad():
        for name, weight in module.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if "norm" in name:
                weight.copy_(1 + 0.1 * noise)
            elif name.endswith(("bias", "sinks")):
                weight.copy_(0.3 * noise)
            else:
                gain = 2.0 if name.endswith(("gate.weight", "router.weight")) else 1.0
                weight.copy_(noise * gain / math.sqrt(HIDDEN))


def _share_ends(module: nn.Module, draft: Path) -> None:
    from safetensors.torch import load_file

    shared = load_file(draft / "model.safetensors")
    with torch.no_grad():
        module.get_input_embeddings().weight.copy_(shared["model.embed_tokens.weight"])  # type: ignore[operator]
        module.get_output_embeddings().weight.copy_(shared["lm_head.weight"])  # type: ignore[operator]
