"""Family: all that differs between the model families that can be a target, in one record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from runtime.expert_math import Gating, activated
from runtime.expert_names import ExpertNames
from runtime.routing_rule import TOP_K, RoutingRule

Config = Mapping[str, Any]  # config.json


def every_layer(config: Config) -> tuple[int, ...]:
    """MoE layers of a model without dense ones."""
    return tuple(range(int(config["num_hidden_layers"])))


def attention_cache(config: Config) -> int:
    """Elements of keys and values per token, over all layers."""
    heads = int(config["num_attention_heads"])
    head_dim = config.get("head_dim") or int(config["hidden_size"]) // heads
    key_heads = config.get("num_key_value_heads") or heads
    return 2 * int(config["num_hidden_layers"]) * int(key_heads) * int(head_dim)


def activation_gating(experts: nn.Module) -> Gating:
    """activation(gate) * up with the activation of the model's experts module."""
    return activated(experts.act_fn)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Family:
    """What is to be known of a family of MoE models that transformers implements.

    model_type, architecture: as config.json names them, the latter also a class of transformers;
    experts, width: keys of config.json (several: the first that is there) for the number of routed
    experts and the width of one; moe_layers, routing, kv_elements: functions of config.json;
    names: of the experts' tensors; block, router: where a layer's module keeps its experts and
    their router, which returns (logits, weights, indices); renamed: other tensors, checkpoint to
    module; kept_float32: parts of names of weights that stay float32 in any dtype; gating: from the
    experts module; refusal: why a config cannot be run, None if it can.
    """

    model_type: str
    architecture: str
    experts: tuple[str, ...] = ("num_experts", "num_local_experts")
    width: str = "moe_intermediate_size"
    moe_layers: Callable[[Config], tuple[int, ...]] = every_layer
    names: ExpertNames = ExpertNames()  # noqa: RUF009 (frozen)
    block: str = "mlp"
    router: str = "gate"
    renamed: tuple[tuple[str, str], ...] = ()
    kept_float32: tuple[str, ...] = ()
    routing: Callable[[Config], RoutingRule] = lambda config: TOP_K
    gating: Callable[[nn.Module], Gating] = activation_gating
    kv_elements: Callable[[Config], int] = attention_cache
    refusal: Callable[[Config], str | None] = lambda config: None

    def module_class(self) -> Any:
        """The class of transformers."""
        import transformers  # here, not above: seconds and 400 MB

        return getattr(transformers, self.architecture)

    def expert_count(self, config: Config) -> int:
        """Routed experts of a layer; KeyError if config.json does not say."""
        key = next((key for key in self.experts if key in config), self.experts[0])
        return int(config[key])

    def routers(self, module: nn.Module, layers: tuple[int, ...]) -> list[nn.Module]:
        """Router modules of the MoE layers, in order."""
        return [getattr(self._block(module, layer), self.router) for layer in layers]

    def experts_modules(self, module: nn.Module, layers: tuple[int, ...]) -> list[nn.Module]:
        """Experts modules of the MoE layers, in order."""
        return [self._block(module, layer).experts for layer in layers]  # type: ignore[misc]

    def module_name(self, stored: str) -> str:
        """The name in the module of a tensor that is none of an expert."""
        for old, new in self.renamed:
            stored = stored.replace(old, new)
        return stored

    def dtype_of(self, name: str, dtype: torch.dtype) -> torch.dtype:
        """What a weight is computed in where the model is computed in `dtype`."""
        return torch.float32 if any(part in name for part in self.kept_float32) else dtype

    def _block(self, module: nn.Module, layer: int) -> nn.Module:
        return getattr(module.model.layers[layer], self.block)  # type: ignore[no-any-return,index,union-attr]
