"""Files of weights: each fault is one clear line, before anything is allocated; memory is not
taken twice.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from offload_setup import ForcedPolicy, fast_standin, tiny_engine
from safetensors.torch import load_file, save_file

from policies.errors import UserError
from runtime.checkpoints import open_target
from runtime.expert_layout import layout_of
from runtime.host_arena import load_arena
from runtime.target_model import open_target_model
from runtime.target_shell import load_shell
from runtime.tiny_families import make_tiny_family
from runtime.weight_files import INDEX, MAPPED_AT_ONCE, READABLE, read_tensors, stored_tensors

Change = Callable[[Path], None]
EXPERT = "model.layers.2.mlp.experts.3.up_proj.weight"
ROUTER = "model.layers.2.mlp.gate.weight"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A tiny Qwen3-MoE in several shards."""
    return make_tiny_family(tmp_path, "qwen3_moe", shards=3)[0]


def shard_of(target: Path, name: str) -> Path:
    return stored_tensors(target)[name].file


def rewritten(file: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = {name: tensor.clone() for name, tensor in load_file(file).items()}
    change(weights)
    save_file(weights, file)


def edit_index(target: Path, change: Callable[[dict[str, str]], None]) -> None:
    content = json.loads((target / INDEX).read_text())
    change(content["weight_map"])
    (target / INDEX).write_text(json.dumps(content))


def removed(name: str) -> Change:
    def change(target: Path) -> None:
        rewritten(shard_of(target, name), lambda weights: weights.pop(name))
        edit_index(target, lambda table: table.pop(name))

    return change


def replaced(name: str, tensor: torch.Tensor) -> Change:
    return lambda target: rewritten(
        shard_of(target, name), lambda weights: weights.update({name: tensor})
    )


def doubled(target: Path) -> None:
    other = next(
        file for file in sorted(target.glob("*.safetensors")) if file != shard_of(target, EXPERT)
    )
    rewritten(other, lambda weights: weights.update({EXPERT: torch.zeros(24, 32)}))


def unlisted(target: Path) -> None:
    edit_index(target, lambda table: table.pop(EXPERT))


def listed_only(target: Path) -> None:
    edit_index(target, lambda table: table.update({"model.ghost": next(iter(table.values()))}))


def misplaced(target: Path) -> None:
    edit_index(
        target,
        lambda table: table.update({EXPERT: min(set(table.values()) - {table[EXPERT]})}),
    )


def truncated(target: Path) -> None:
    file = shard_of(target, EXPERT)
    file.write_bytes(file.read_bytes()[:-100])


def outside(target: Path) -> None:
    edit_index(target, lambda table: table.update({EXPERT: "../elsewhere.safetensors"}))


def lost(target: Path) -> None:
    shard_of(target, EXPERT).unlink()


def no_map(target: Path) -> None:
    (target / INDEX).write_text('{"metadata": {}}')


FAULTS: dict[str, tuple[Change, str]] = {
    "missing expert": (removed(EXPERT), "1 expert projections missing, first up of layer 2, exp"),
    "missing router": (removed(ROUTER), rf"1 weights missing, first {ROUTER}"),
    "wrong shape": (replaced(EXPERT, torch.zeros(32, 24)), r"shape \[32, 24\], up must be \[24, "),
    "wrong router": (replaced(ROUTER, torch.zeros(7, 32)), rf"1 weights misshapen, first {ROUTER}"),
    "foreign dtype": (
        replaced(EXPERT, torch.zeros(24, 32, dtype=torch.int8)), "is I8, only F32, BF16, F16 are",
    ),
    "float8": (
        replaced(EXPERT, torch.zeros(24, 32).to(torch.float8_e4m3fn)), "is F8_E4M3, only F32",
    ),
    "in two shards": (doubled, rf"tensor {EXPERT} comes twice, in model-.* and model-"),
    "not in the index": (unlisted, rf"1 tensors are not where .* first {EXPERT}: index does not"),
    "in the index alone": (listed_only, "first model.ghost: index model-.*, files lack it"),
    "in another shard": (misplaced, rf"first {EXPERT}: index model-.*, files model-"),
    "truncated": (truncated, "unreadable weights"),
    "outside the folder": (outside, "outside the checkpoint"),
    "shard lost": (lost, r"1 of \d weight files missing, first model-0000"),
    "no weight map": (no_map, "no readable weight_map"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_checkpoint_is_refused_in_one_line(fault: str, target: Path) -> None:
    change, message = FAULTS[fault]
    change(target)
    with (
        pytest.raises(UserError, match=message) as caught,
        tiny_engine(target.parent, ForcedPolicy("CPU")),
    ):
        pass
    assert "\n" not in str(caught.value)
    assert str(target) in str(caught.value)


@pytest.mark.parametrize("fault", sorted(set(FAULTS) - {"missing router", "wrong router"}))
def test_nothing_is_allocated_for_faulty_experts(fault: str, target: Path) -> None:
    facts = open_target(target)
    FAULTS[fault][0](target)
    device = fast_standin()
    device.alloc_host = lambda size: pytest.fail(f"{size} bytes allocated")  # type: ignore[method-assign]
    with pytest.raises(UserError):
        load_arena(facts, layout_of(facts, torch.float32), device)
    device.close()


@pytest.mark.parametrize("fault", sorted(set(FAULTS) - {"shard lost", "outside the folder"}))
def test_the_plain_model_is_refused_alike(fault: str, target: Path) -> None:
    """Recording loads the same files through transformers."""
    FAULTS[fault][0](target)
    with pytest.raises(UserError):
        open_target_model(target)


def test_a_tensor_too_many_is_refused(target: Path) -> None:
    file = shard_of(target, EXPERT)
    rewritten(file, lambda weights: weights.update({"model.extra": torch.zeros(2)}))
    edit_index(target, lambda table: table.update({"model.extra": file.name}))
    facts = open_target(target)
    with pytest.raises(UserError, match=r"1 weights unknown, first model\.extra"):
        load_shell(facts, torch.device("cpu"), torch.float32)


def test_frequencies_that_old_files_store_are_no_fault(target: Path) -> None:
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    file = shard_of(target, EXPERT)
    rewritten(file, lambda weights: weights.update({name: torch.zeros(8)}))
    edit_index(target, lambda table: table.update({name: file.name}))
    shell = load_shell(open_target(target), torch.device("cpu"), torch.float32)
    assert not any(weight.is_meta for weight in shell.module.model.rotary_emb.buffers())


def test_headers_say_what_the_files_hold(target: Path) -> None:
    stored = stored_tensors(target)
    seen = {}
    for tensor, values in read_tensors(target, lambda name: True):
        assert tuple(values.shape) == tensor.shape
        assert values.numel() * values.itemsize == tensor.size
        seen[tensor.name] = tensor
    assert seen == stored
    assert len({tensor.file for tensor in stored.values()}) > 1
    assert {tensor.dtype for tensor in stored.values()} <= READABLE.keys()


LOADING = r"""
import re, sys, torch
from pathlib import Path
from runtime.checkpoints import open_target
from runtime.expert_layout import layout_of
from runtime.host_arena import load_arena
from runtime.standin import StandIn
facts = open_target(Path(sys.argv[1]))
layout = layout_of(facts, torch.bfloat16, sys.argv[2])
import safetensors.torch
status = lambda field: int(re.search(field + r":\s+(\d+) kB", open("/proc/self/status").read())[1])
device = StandIn({})
before = status("VmRSS")
arena = load_arena(facts, layout, device)
device.close()
print(arena.rows.numel(), (status("VmHWM") - before) * 1024)
"""
LAYERS, EXPERTS, HIDDEN, WIDTH = 2, 64, 256, 768  # 144 MiB of experts in bf16


def write_large_experts(target: Path, shards: int) -> None:
    """The expert tensors of a larger Qwen3-MoE beside the tiny one's config."""
    config = json.loads((target / "config.json").read_text()) | {
        "num_hidden_layers": LAYERS, "mlp_only_layers": [], "num_experts": EXPERTS,
        "num_local_experts": EXPERTS, "hidden_size": HIDDEN, "moe_intermediate_size": WIDTH,
    }  # fmt: skip
    (target / "config.json").write_text(json.dumps(config))
    for file in [*target.glob("*.safetensors"), target / INDEX]:
        file.unlink()
    shapes = {
        "gate_proj": (WIDTH, HIDDEN),
        "up_proj": (WIDTH, HIDDEN),
        "down_proj": (HIDDEN, WIDTH),
    }
    names = [
        (f"model.layers.{layer}.mlp.experts.{expert}.{name}.weight", shape)
        for layer in range(LAYERS)
        for expert in range(EXPERTS)
        for name, shape in shapes.items()
    ]
    index = {}
    for shard in range(shards):
        part = {name: torch.randn(shape).bfloat16() for name, shape in names[shard::shards]}
        file = f"model-{shard}.safetensors"
        save_file(part, target / file)
        index |= dict.fromkeys(part, file)
    (target / INDEX).write_text(json.dumps({"weight_map": index}))


@pytest.mark.parametrize("expert_format", ["same", "int8"])
@pytest.mark.parametrize("shards", [1, 6])
def test_the_experts_are_in_memory_once(expert_format: str, shards: int, target: Path) -> None:
    """Measured: the peak of resident memory while experts are loaded is the arena's size, what is
    mapped of one file, and a little.
    """
    write_large_experts(target, shards)
    done = subprocess.run(
        [sys.executable, "-c", LOADING, str(target), expert_format],
        check=True, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    arena, taken = map(int, done.stdout.split())
    assert arena > (140 if expert_format == "same" else 70) * 2**20
    assert arena <= taken < arena + MAPPED_AT_ONCE + 24 * 2**20
