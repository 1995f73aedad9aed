"""The target: a Qwen3-MoE model with a KV cache and its routers in layer order."""

from pathlib import Path

from torch import nn

from runtime.causal_model import CausalModel
from runtime.checkpoints import load_target, open_target


class TargetModel(CausalModel):
    """The verified model. `routers[l]` is the router of the l-th MoE layer."""

    @property
    def routers(self) -> list[nn.Module]:
        """Router modules of the MoE layers; each returns (logits, weights, indices)."""
        layers = self.module.model.layers
        return [layers[number].mlp.gate for number in self.facts.moe_layers]


def open_target_model(path: str | Path, device: str = "cpu", dtype: str = "float32") -> TargetModel:
    """Load a checkpoint as a target; UserError if it is not a readable Qwen3-MoE checkpoint."""
    return TargetModel(load_target(path, device, dtype), open_target(path))
