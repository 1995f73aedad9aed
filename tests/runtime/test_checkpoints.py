import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from policies.errors import UserError
from runtime.checkpoints import (
    load_draft,
    load_target,
    open_draft,
    open_target,
    torch_device,
    torch_dtype,
)
from runtime.expert_layout import layout_of
from runtime.tiny import TinyShape, make_tiny_pair
from runtime.weight_files import weight_files


def edit_config(folder: Path, **changes: object) -> None:
    file = folder / "config.json"
    config = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return make_tiny_pair(tmp_path / "mini")


def test_facts_of_a_target(tiny_path: Path) -> None:
    facts = open_target(tiny_path / "target")
    assert (facts.layers, facts.moe_layers) == (4, (0, 2, 3))
    assert (facts.experts, facts.top_k, facts.vocabulary) == (8, 2, 64)
    assert facts.end_tokens == {5}
    assert layout_of(facts, torch.float32).expert_bytes == 3 * 32 * 24 * 4
    assert layout_of(facts, torch.bfloat16).expert_bytes == 3 * 32 * 24 * 2


def test_facts_of_a_published_size(pair: tuple[Path, Path]) -> None:
    """Qwen3-30B-A3B: 48 layers, 128 experts, top 8, 9.00 MiB an expert in bf16."""
    edit_config(
        pair[0],
        num_hidden_layers=48,
        num_experts=128,
        num_experts_per_tok=8,
        hidden_size=2048,
        moe_intermediate_size=768,
    )
    facts = open_target(pair[0])
    assert (len(facts.moe_layers), facts.experts) == (48, 128)
    assert layout_of(facts, torch.bfloat16).expert_bytes == 9 * 2**20


def test_sparse_step_skips_layers(pair: tuple[Path, Path]) -> None:
    edit_config(pair[0], num_hidden_layers=6, decoder_sparse_step=2, mlp_only_layers=[3])
    assert open_target(pair[0]).moe_layers == (1, 5)


def test_facts_of_a_draft(tiny_path: Path) -> None:
    facts = open_draft(tiny_path / "draft")
    assert (facts.layers, facts.experts, facts.moe_layers) == (1, 0, ())


@pytest.mark.parametrize(
    ("generation", "config", "expected"),
    [(None, 3, {3}), (4, 3, {4}), ([4, 6], None, {4, 6}), (None, None, set())],
)
def test_end_tokens(
    pair: tuple[Path, Path], generation: object, config: object, expected: set[int]
) -> None:
    edit_config(pair[0], eos_token_id=config)
    if generation is not None:
        content = json.dumps({"eos_token_id": generation})
        (pair[0] / "generation_config.json").write_text(content)
    assert open_target(pair[0]).end_tokens == expected


def test_names(pair: tuple[Path, Path], tmp_path: Path) -> None:
    assert open_target(pair[0]).name == "mini/target"
    snapshot = tmp_path / "models--Qwen--Qwen3-30B-A3B" / "snapshots" / "ad44e77"
    shutil.copytree(pair[0], snapshot)
    assert open_target(snapshot).name == "Qwen/Qwen3-30B-A3B"
    shutil.copytree(pair[0], tmp_path / "mine")
    assert open_target(tmp_path / "mine").name == "mine"


def test_reading_facts_imports_no_model_class(tiny_path: Path) -> None:
    program = (
        "import sys; from runtime.checkpoints import open_target; "
        f"open_target({str(tiny_path / 'target')!r}); "
        "assert 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"architectures": ["MixtralForCausalLM"]},
            r"qwen3_moe with architecture MixtralForCausalLM is not supported.*olmoe",
        ),
        ({"architectures": None}, "none named"),
        ({"model_type": "mamba"}, r"model_type mamba .* known are qwen3_moe \(Qwen3Moe"),
        ({"quantization_config": {"quant_method": "gptq"}}, "gptq"),
        ({"num_hidden_layers": "many"}, "must be a whole number"),
        ({"hidden_size": None}, "hidden_size"),
        ({"num_experts_per_tok": 9}, "8 experts"),
        ({"mlp_only_layers": [0, 1, 2]}, "0 MoE layers"),
    ],
)
def test_unfit_targets_are_refused(
    pair: tuple[Path, Path], change: dict[str, object], message: str
) -> None:
    edit_config(pair[0], **change)
    with pytest.raises(UserError, match=message):
        open_target(pair[0])


def test_roles_are_not_exchangeable(pair: tuple[Path, Path]) -> None:
    with pytest.raises(UserError, match="model_type qwen3 with architecture Qwen3ForCausalLM"):
        open_target(pair[1])
    with pytest.raises(UserError, match="Qwen3MoeForCausalLM is not supported as a draft"):
        open_draft(pair[0])


def test_damaged_folders_are_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no config.json"):
        open_target(tmp_path / "nowhere")
    (pair[0] / "config.json").write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        open_target(pair[0])
    (pair[0] / "config.json").write_text("[]")
    with pytest.raises(UserError, match="expected a JSON object"):
        open_target(pair[0])
    (pair[1] / "model.safetensors").rename(pair[1] / "pytorch_model.bin")
    with pytest.raises(UserError, match="only safetensors"):
        open_draft(pair[1])


def test_shards_load_like_one_file(tmp_path: Path) -> None:
    whole, _ = make_tiny_pair(tmp_path / "whole")
    parts, _ = make_tiny_pair(tmp_path / "parts", shape=TinyShape(shards=3))
    assert len(weight_files(parts)) == 3
    one, three = load_target(whole).state_dict(), load_target(parts).state_dict()
    assert one.keys() == three.keys()
    assert all(torch.equal(one[name], three[name]) for name in one)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    parts, _ = make_tiny_pair(tmp_path, shape=TinyShape(shards=3))
    (parts / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(UserError, match="1 of 3 weight files missing, first model-00002"):
        open_target(parts)


def test_a_missing_tensor_is_not_filled_with_noise(pair: tuple[Path, Path]) -> None:
    file = pair[0] / "model.safetensors"
    weights = load_file(file)
    del weights["model.layers.2.mlp.gate.weight"]
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"1 weights missing or misshapen.*layers.2.mlp.gate"):
        load_target(pair[0])


def test_weights_of_another_shape_are_refused(pair: tuple[Path, Path]) -> None:
    edit_config(pair[1], intermediate_size=20)
    with pytest.raises(UserError, match="misshapen"):
        load_draft(pair[1])


def test_a_truncated_file_is_refused(pair: tuple[Path, Path]) -> None:
    file = pair[1] / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(UserError, match="unreadable weights"):
        load_draft(pair[1])


def test_dtype_and_device_names(pair: tuple[Path, Path]) -> None:
    assert next(load_draft(pair[1], dtype="bfloat16").parameters()).dtype == torch.bfloat16
    with pytest.raises(UserError, match="use one of float32, bfloat16, float16"):
        torch_dtype("int8")
    for name in ("tpu", "cuda:x", "cuda:99"):
        with pytest.raises(UserError, match=r"use .*cpu"):
            torch_device(name)
