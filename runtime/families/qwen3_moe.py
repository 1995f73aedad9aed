"""Qwen3-MoE (Qwen3-30B-A3B, Qwen3-235B-A22B, the shipped pair)."""

from runtime.family import Config, Family


def sparse_layers(config: Config) -> tuple[int, ...]:
    """Every `decoder_sparse_step`-th layer, without those that `mlp_only_layers` names."""
    step = int(config.get("decoder_sparse_step", 1))
    dense = set(config.get("mlp_only_layers") or [])
    layers = range(int(config["num_hidden_layers"]))
    return tuple(layer for layer in layers if layer not in dense and (layer + 1) % step == 0)


QWEN3_MOE = Family("qwen3_moe", "Qwen3MoeForCausalLM", moe_layers=sparse_layers)
