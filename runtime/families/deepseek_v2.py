"""DeepSeek-V2 and V2-Lite: dense layers first, shared experts (not offloaded), latent attention."""

from runtime.family import Config, Family
from runtime.routing_rule import TOP_K, RoutingRule


def layers_after_dense(config: Config) -> tuple[int, ...]:
    """All but the first `first_k_dense_replace` layers."""
    return tuple(range(int(config["first_k_dense_replace"]), int(config["num_hidden_layers"])))


def grouped_routing(config: Config) -> RoutingRule:
    """Top-k of all experts (V2-Lite) or of the best groups (V2)."""
    if config.get("topk_method", "greedy") == "greedy":
        return TOP_K
    return RoutingRule(int(config["n_group"]), int(config["topk_group"]))


def latent_cache(config: Config) -> int:
    """transformers caches the compressed latent and the shared rotary key."""
    latent = int(config["kv_lora_rank"]) + int(config["qk_rope_head_dim"])
    return int(config["num_hidden_layers"]) * latent


def unknown_routing(config: Config) -> str | None:
    """transformers' router knows two methods, and every layer behind the dense ones is MoE."""
    method = config.get("topk_method", "greedy")
    if method not in ("greedy", "group_limited_greedy"):
        return f"topk_method={method} is unknown; greedy and group_limited_greedy are computed"
    if config.get("moe_layer_freq", 1) != 1:
        return f"moe_layer_freq={config['moe_layer_freq']}; only 1 is computed"
    return None


DEEPSEEK_V2 = Family(
    "deepseek_v2",
    "DeepseekV2ForCausalLM",
    experts=("n_routed_experts", "num_experts", "num_local_experts"),
    moe_layers=layers_after_dense,
    kept_float32=("mlp.gate.weight",),
    routing=grouped_routing,
    kv_elements=latent_cache,
    refusal=unknown_routing,
)
