"""Ways of naming and storing experts: each is read into the same arena, or refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from offload_setup import fast_standin
from safetensors.torch import save_file

from policies.errors import UserError
from runtime.checkpoints import CheckpointFacts, open_target
from runtime.expert_layout import INT8, SAME, layout_of
from runtime.expert_names import FUSED_WITH_BIASES, W1_W3_W2, ExpertNames
from runtime.families import FAMILIES
from runtime.host_arena import HostArena, load_arena
from runtime.int8 import rounded
from runtime.tiny import TinyShape, make_tiny_pair

HIDDEN, WIDTH, EXPERTS = 32, 24, 8
BLOCK = "model.layers.{}.mlp.experts"

Weights = dict[str, torch.Tensor]


def experts_of_layer(layer: int) -> Weights:
    """gate, up [E, I, H], down [E, H, I], biases [E, outputs]."""
    generator = torch.Generator().manual_seed(layer)
    shapes = {
        "gate": (WIDTH, HIDDEN), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH),
        "gate bias": (WIDTH,), "up bias": (WIDTH,), "down bias": (HIDDEN,),
    }  # fmt: skip
    return {n: torch.randn(EXPERTS, *shape, generator=generator) for n, shape in shapes.items()}


def split(parts: Weights, block: str, names: dict[str, str]) -> Weights:
    return {
        f"{block}.{expert}.{name}.weight": parts[part][expert]
        for part, name in names.items()
        for expert in range(EXPERTS)
    }


def fused(parts: Weights, block: str, transposed: bool, interleaved: bool, biased: bool) -> Weights:
    """Written out by hand: stacked along the outputs, or alternating, then perhaps turned over."""

    def joined(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        if not interleaved:
            return torch.cat([first, second], dim=1)
        return torch.stack([first, second], dim=2).flatten(1, 2)

    gate_up, down = joined(parts["gate"], parts["up"]), parts["down"]
    if transposed:
        gate_up, down = gate_up.transpose(1, 2), down.transpose(1, 2)
    weights = {f"{block}.gate_up_proj": gate_up, f"{block}.down_proj": down}
    if biased:
        weights[f"{block}.gate_up_proj_bias"] = joined(parts["gate bias"], parts["up bias"])
        weights[f"{block}.down_proj_bias"] = parts["down bias"]
    return weights


WAYS = {
    "gate, up, down": ExpertNames(),
    "w1, w3, w2": ExpertNames(split=W1_W3_W2),
    "stacked": ExpertNames(split={}),
    "stacked, transposed": ExpertNames(split={}, transposed=True),
    "stacked, interleaved": ExpertNames(split={}, interleaved=True),
    "stacked, transposed, interleaved, biased": ExpertNames(
        split={}, fused=FUSED_WITH_BIASES, transposed=True, interleaved=True
    ),
    "stacked, biased": ExpertNames(split={}, fused=FUSED_WITH_BIASES),
}


def stored(way: str, layer: int) -> Weights:
    parts, block, names = experts_of_layer(layer), BLOCK.format(layer), WAYS[way]
    if way == "gate, up, down":
        return split(parts, block, {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"})
    if way == "w1, w3, w2":
        return split(parts, block, {"gate": "w1", "up": "w3", "down": "w2"})
    biased = names.fused is FUSED_WITH_BIASES
    return fused(parts, block, names.transposed, names.interleaved, biased)


def checkpoint(folder: Path, way: str) -> CheckpointFacts:
    target, _ = make_tiny_pair(folder, shape=TinyShape(layers=2))
    weights = stored(way, 0) | stored(way, 1)
    whole = {name: one.contiguous() for name, one in weights.items()}
    save_file(whole, target / "model.safetensors")
    family = replace(FAMILIES["qwen3_moe"], names=WAYS[way])
    return replace(open_target(target), family=family)


def loaded(facts: CheckpointFacts, expert_format: str = SAME) -> HostArena:
    device = fast_standin()
    try:
        return load_arena(facts, layout_of(facts, torch.float32, expert_format), device)
    finally:
        device.close()


@pytest.mark.parametrize("way", WAYS)
def test_every_way_fills_the_same_arena(way: str, tmp_path: Path) -> None:
    arena = loaded(checkpoint(tmp_path, way))
    for layer in range(2):
        parts = experts_of_layer(layer)
        for expert in range(EXPERTS):
            weights = arena.weights(layer * EXPERTS + expert)
            gate_up = torch.cat([parts["gate"][expert], parts["up"][expert]])
            assert torch.equal(weights.gate_up, gate_up)
            assert torch.equal(weights.down, parts["down"][expert])
            if "biased" in way:
                biases = torch.cat([parts["gate bias"][expert], parts["up bias"][expert]])
                assert weights.gate_up_bias is not None and weights.down_bias is not None
                assert torch.equal(weights.gate_up_bias, biases)
                assert torch.equal(weights.down_bias, parts["down bias"][expert])
            else:
                assert weights.gate_up_bias is None and weights.down_bias is None


@pytest.mark.parametrize("way", WAYS)
def test_int8_scales_belong_to_outputs_in_every_way(way: str, tmp_path: Path) -> None:
    arena = loaded(checkpoint(tmp_path, way), INT8)
    parts = experts_of_layer(1)
    weights = arena.weights(EXPERTS + 3)
    assert weights.gate_up_scale is not None
    given = weights.gate_up.float() * weights.gate_up_scale[:, None]
    assert torch.equal(given, rounded(torch.cat([parts["gate"][3], parts["up"][3]])))


@pytest.mark.parametrize(
    "way",
    [
        "w1, w3, w2", "stacked, transposed", "stacked, transposed, interleaved, biased",
        "stacked, biased",
    ],
)  # fmt: skip
def test_names_of_another_family_are_refused(way: str, tmp_path: Path) -> None:
    """Read as Qwen3-MoE. Interleaving alone cannot be seen: only the family tells."""
    as_qwen = replace(checkpoint(tmp_path, way), family=FAMILIES["qwen3_moe"])
    with pytest.raises(UserError, match=r"is not known to qwen3_moe|has shape"):
        loaded(as_qwen)


def test_a_family_without_a_known_expert_is_refused_by_what_is_missing(tmp_path: Path) -> None:
    facts = checkpoint(tmp_path, "stacked")
    biased = replace(facts.target_family, names=ExpertNames(split={}, fused=FUSED_WITH_BIASES))
    with pytest.raises(UserError, match=r"48 expert projections missing, first gate bias of layer"):
        loaded(replace(facts, family=biased))


@pytest.mark.parametrize("model_type", FAMILIES)
def test_names_and_layout_are_those_that_transformers_declares(model_type: str) -> None:
    family = FAMILIES[model_type]
    model = family.module_class()
    assert model.config_class.model_type == model_type
    with torch.device("meta"):
        module = model(model.config_class(num_hidden_layers=2, first_k_dense_replace=1))
    experts = family.experts_modules(module, (1,))[0]
    held = {name for name, _ in experts.named_parameters()}
    assert held == family.names.fused.keys()
    assert experts.is_transposed == family.names.transposed
    assert experts.is_concatenated != family.names.interleaved
    assert experts.has_bias == ("gate bias" in family.names.parts)
