"""The target without its experts: everything else is loaded, the experts' parameters stay empty.

The empty parameters live on torch's meta device, so that the experts are in memory once, in the
host arena.
"""

import math

import torch
from torch import nn

from policies.errors import UserError
from runtime.checkpoints import CheckpointFacts, weight_files
from runtime.expert_names import is_expert_tensor
from runtime.target_model import TargetModel


def load_shell(facts: CheckpointFacts, device: torch.device, dtype: torch.dtype) -> TargetModel:
    """A target whose MoE layers cannot compute yet; UserError if another weight is missing."""
    from safetensors import safe_open
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    config = Qwen3MoeConfig.from_pretrained(str(facts.path), local_files_only=True)
    config.dtype = dtype
    with torch.device("meta"):
        module = Qwen3MoeForCausalLM(config)
    weights = {}
    for file in weight_files(facts.path):
        with safe_open(str(file), framework="pt") as shard:
            for name in shard.keys():  # noqa: SIM118 (a shard is not a dict)
                if not is_expert_tensor(name):
                    weights[name] = shard.get_tensor(name).to(device, dtype, copy=True)
    _check(facts, module, weights)
    module.load_state_dict(weights, strict=False, assign=True)
    module.tie_weights()
    # Its frequencies are computed, not stored, and were computed on the meta device.
    module.model.rotary_emb = type(module.model.rotary_emb)(config).to(device)
    return TargetModel(module.eval().requires_grad_(False), facts)


def shell_bytes(facts: CheckpointFacts, dtype: torch.dtype) -> int:
    """Bytes of everything but the experts in `dtype`, from the headers of the files."""
    from safetensors import safe_open

    elements = 0
    for file in weight_files(facts.path):
        with safe_open(str(file), framework="pt") as shard:
            for name in shard.keys():  # noqa: SIM118 (a shard is not a dict)
                if not is_expert_tensor(name):
                    elements += math.prod(shard.get_slice(name).get_shape())
    return elements * dtype.itemsize


def _check(facts: CheckpointFacts, module: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    expected = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    tied = {"lm_head.weight"} if module.config.tie_word_embeddings else set()
    wanted = {name for name in expected if not is_expert_tensor(name)} - tied
    missing, unknown = sorted(wanted - weights.keys()), sorted(weights.keys() - expected.keys())
    misshapen = [
        name for name in sorted(wanted & weights.keys()) if weights[name].shape != expected[name]
    ]
    for problem, names in (("missing", missing), ("unknown", unknown), ("misshapen", misshapen)):
        if names:
            raise UserError(
                f"{facts.path}: {len(names)} weights {problem}, first {names[0]}; "
                "the files do not belong to this config.json"
            )
