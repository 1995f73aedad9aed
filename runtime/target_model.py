"""The target: a MoE model with a KV cache and its routers in layer order."""

from pathlib import Path

from torch import nn

from runtime.causal_model import CausalModel
from runtime.checkpoints import load_target, open_target
from runtime.expert_inventory import take_inventory
from runtime.expert_layout import INT8, SAME
from runtime.rounded_experts import round_experts


class TargetModel(CausalModel):
    """The verified model. `routers[l]` is the router of the l-th MoE layer."""

    @property
    def routers(self) -> list[nn.Module]:
        """Router modules of the MoE layers; each returns (logits, weights, indices)."""
        return self.facts.target_family.routers(self.module, self.facts.moe_layers)

    @property
    def experts(self) -> list[nn.Module]:
        """Experts modules of the MoE layers."""
        return self.facts.target_family.experts_modules(self.module, self.facts.moe_layers)


def open_target_model(
    path: str | Path, device: str = "cpu", dtype: str = "float32", expert_format: str = SAME
) -> TargetModel:
    """Load a checkpoint as a target; UserError if it is none of a known family.

    expert_format int8: experts with the values that int8 storage would give back.
    """
    facts = open_target(path)
    take_inventory(facts)  # transformers would go on with an expert that is not there
    target = TargetModel(load_target(path, device, dtype), facts)
    if expert_format == INT8:
        round_experts(target.experts, target.facts.target_family.names)
    return target
