"""The host arena: every projection once, in its place, whatever the names and their order."""

import json
import random
from pathlib import Path

import pytest
import torch
from offload_setup import fast_standin
from safetensors.torch import save_file

from policies.errors import UserError
from runtime.checkpoints import CheckpointFacts, open_target
from runtime.expert_layout import layout_of
from runtime.expert_math import activated, expert_rows
from runtime.expert_names import DOWN, GATE, UP, ExpertNames
from runtime.families import FAMILIES
from runtime.host_arena import HostArena, load_arena

HIDDEN, WIDTH, EXPERTS, LAYERS = 8, 12, 3, 2  # not square: exchanged projections have other shapes
SCHEMES = ("gate_up_down", "w1_w3_w2", "fused")

Weights = dict[str, torch.Tensor]
Parts = dict[tuple[int, int], Weights]


def random_parts(seed: int = 0) -> Parts:
    generator = torch.Generator().manual_seed(seed)
    return {
        (layer, expert): {
            GATE: torch.randn(WIDTH, HIDDEN, generator=generator),
            UP: torch.randn(WIDTH, HIDDEN, generator=generator),
            DOWN: torch.randn(HIDDEN, WIDTH, generator=generator),
        }
        for layer in range(LAYERS)
        for expert in range(EXPERTS)
    }


def named(parts: Parts, scheme: str) -> Weights:
    names = {
        "gate_up_down": ("mlp", {GATE: "gate_proj", UP: "up_proj", DOWN: "down_proj"}),
        "w1_w3_w2": ("block_sparse_moe", {GATE: "w1", UP: "w3", DOWN: "w2"}),
    }
    weights: Weights = {}
    if scheme == "fused":
        for layer in range(LAYERS):
            block = f"model.layers.{layer}.mlp.experts"
            experts = [parts[layer, expert] for expert in range(EXPERTS)]
            weights[f"{block}.gate_up_proj"] = torch.stack(
                [torch.cat([one[GATE], one[UP]]) for one in experts]
            )
            weights[f"{block}.down_proj"] = torch.stack([one[DOWN] for one in experts])
        return weights
    block, table = names[scheme]
    for (layer, expert), one in parts.items():
        for projection, tensor in one.items():
            name = f"model.layers.{layer}.{block}.experts.{expert}.{table[projection]}.weight"
            weights[name] = tensor
    return weights


def written(folder: Path, weights: Weights, shards: int = 1, seed: int = 0) -> CheckpointFacts:
    """A checkpoint directory with these expert tensors in shuffled order over some files."""
    folder.mkdir(parents=True, exist_ok=True)
    mixtral = any(".block_sparse_moe." in name for name in weights)
    family = FAMILIES["mixtral" if mixtral else "qwen3_moe"]
    config = {
        "architectures": [family.architecture], "model_type": family.model_type,
        "num_attention_heads": 1, "intermediate_size": WIDTH,
        "num_hidden_layers": LAYERS, "hidden_size": HIDDEN, "vocab_size": 16,
        "max_position_embeddings": 32, "num_experts": EXPERTS, "num_experts_per_tok": 2,
        "moe_intermediate_size": WIDTH, "decoder_sparse_step": 1, "mlp_only_layers": [],
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    names = list(weights)
    random.Random(seed).shuffle(names)
    index = {}
    for shard in range(shards):
        file = "model.safetensors" if shards == 1 else f"model-{shard}.safetensors"
        part = {name: weights[name].contiguous() for name in names[shard::shards]}
        save_file(part, folder / file)
        index |= dict.fromkeys(part, file)
    if shards > 1:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return open_target(folder)


def load(facts: CheckpointFacts, dtype: torch.dtype = torch.float32) -> HostArena:
    device = fast_standin()
    try:
        return load_arena(facts, layout_of(facts, dtype), device)
    finally:
        device.close()


def reference(hidden: torch.Tensor, one: Weights) -> torch.Tensor:
    gated = torch.nn.functional.silu(hidden @ one[GATE].T) * (hidden @ one[UP].T)
    return gated @ one[DOWN].T


def computed(hidden: torch.Tensor, arena: HostArena, key: int) -> torch.Tensor:
    return expert_rows(hidden, arena.weights(key), activated(torch.nn.functional.silu))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("shards", [1, 2])
def test_every_expert_computes_what_its_weights_say(
    scheme: str, shards: int, tmp_path: Path
) -> None:
    parts, hidden = random_parts(), torch.randn(5, HIDDEN)
    arena = load(written(tmp_path / "checkpoint", named(parts, scheme), shards, seed=shards))
    for (layer, expert), one in parts.items():
        torch.testing.assert_close(
            computed(hidden, arena, layer * EXPERTS + expert), reference(hidden, one)
        )


@pytest.mark.parametrize("scheme", SCHEMES[:2])
def test_up_and_down_exchanged_fails_by_shape(scheme: str, tmp_path: Path) -> None:
    parts = {key: one | {UP: one[DOWN], DOWN: one[UP]} for key, one in random_parts().items()}
    with pytest.raises(UserError, match=r"has shape .* must be .* are projections exchanged"):
        load(written(tmp_path / "checkpoint", named(parts, scheme)))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_gate_and_up_exchanged_changes_the_values(scheme: str, tmp_path: Path) -> None:
    parts, hidden = random_parts(), torch.randn(5, HIDDEN)
    exchanged = {key: one | {UP: one[GATE], GATE: one[UP]} for key, one in parts.items()}
    arena = load(written(tmp_path / "checkpoint", named(exchanged, scheme)))
    assert not torch.allclose(computed(hidden, arena, 0), reference(hidden, parts[0, 0]), atol=1e-2)


def test_weights_are_converted_to_the_compute_dtype(tmp_path: Path) -> None:
    half = {name: tensor.half() for name, tensor in named(random_parts(), "fused").items()}
    facts = written(tmp_path / "checkpoint", half)
    assert torch.equal(load(facts).down(0), half["model.layers.0.mlp.experts.down_proj"][0].float())
    assert load(facts, torch.bfloat16).gate_up(0).dtype == torch.bfloat16


def test_a_missing_projection_is_named(tmp_path: Path) -> None:
    weights = named(random_parts(), "gate_up_down")
    del weights["model.layers.1.mlp.experts.2.up_proj.weight"]
    with pytest.raises(UserError, match="1 expert projections missing, first up of layer 1, exp"):
        load(written(tmp_path / "checkpoint", weights))


def test_a_projection_that_comes_twice_is_refused(tmp_path: Path) -> None:
    weights = named(random_parts(), "gate_up_down")
    weights |= {
        name: tensor for name, tensor in named(random_parts(), "fused").items() if ".0." in name
    }
    with pytest.raises(UserError, match=r"of layer 0, expert 0 comes twice, in .* and model"):
        load(written(tmp_path / "checkpoint", weights))


def test_an_expert_beyond_the_configuration_is_refused(tmp_path: Path) -> None:
    weights = named(random_parts(), "gate_up_down")
    weights["model.layers.0.mlp.experts.3.gate_proj.weight"] = torch.zeros(WIDTH, HIDDEN)
    with pytest.raises(UserError, match="has 3 experts"):
        load(written(tmp_path / "checkpoint", weights))


@pytest.mark.parametrize(
    "rest", ["0.gate_proj.qweight", "0.gate_proj.bias", "scales", "0.w4.weight"]
)
def test_unknown_names_among_the_experts_are_refused(rest: str, tmp_path: Path) -> None:
    weights = named(random_parts(), "gate_up_down")
    weights[f"model.layers.0.mlp.experts.{rest}"] = torch.zeros(1)
    with pytest.raises(UserError, match="lies among the experts but is not known"):
        load(written(tmp_path / "checkpoint", weights))


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.mlp.gate.weight",
        "model.embed_tokens.weight",
        "model.layers.0.mlp.up_proj.weight",
    ],
)
def test_other_tensors_are_not_taken_for_experts(name: str) -> None:
    assert ExpertNames().parse(name) is None


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    facts = written(tmp_path / "checkpoint", named(random_parts(), "fused"))
    (facts.path / "model.safetensors").write_bytes(b"not tensors at all, just text")
    with pytest.raises(UserError, match="unreadable weights"):
        load(facts)
