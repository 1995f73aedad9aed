"""A target without its experts: everything else is loaded, the experts' parameters stay empty.

The empty parameters live on torch's meta device, so that the experts are in memory once, in the
host arena.
"""

import re

import torch
from torch import nn

from policies.errors import UserError
from runtime.checkpoints import CheckpointFacts
from runtime.target_model import TargetModel
from runtime.weight_files import read_tensors

_EXPERT = re.compile(r"\.experts\.")


def load_shell(facts: CheckpointFacts, device: torch.device, dtype: torch.dtype) -> TargetModel:
    """A target whose MoE layers cannot compute yet; UserError if another weight is missing."""
    family = facts.target_family
    model = family.module_class()
    config = model.config_class.from_pretrained(str(facts.path), local_files_only=True)
    config.dtype = dtype
    with torch.device("meta"):
        module = model(config)
    weights = {}
    for stored, values in read_tensors(facts.path, lambda name: _is_kept(facts, name)):
        name = family.module_name(stored.name)
        # copy: what is read is a mapping of the file, which must not stay open
        weights[name] = values.to(device, family.dtype_of(name, dtype), copy=True)
    _check(facts, module, weights)
    module.load_state_dict(weights, strict=False, assign=True)
    module.tie_weights()
    # Its frequencies are computed, not stored, and were computed on the meta device.
    module.model.rotary_emb = type(module.model.rotary_emb)(config).to(device)
    return TargetModel(module.eval().requires_grad_(False), facts)


def _is_kept(facts: CheckpointFacts, name: str) -> bool:
    """Frequencies that old checkpoints still store are computed, as transformers does."""
    return not (facts.target_family.names.is_expert(name) or name.endswith("rotary_emb.inv_freq"))


def _check(facts: CheckpointFacts, module: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    expected = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    tied = {"lm_head.weight"} if module.config.tie_word_embeddings else set()
    wanted = {name for name in expected if not _EXPERT.search(name)} - tied
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
