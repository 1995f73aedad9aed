"""Profiles and cost tables: every shipped file, known sizes and times, refusals in plain words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from policies.errors import UserError
from simulator.cost_tables import cost_table
from simulator.draft_profile import DraftProfile, draft_profile
from simulator.hardware import DecisionTimes, HardwareProfile, hardware_profile
from simulator.model_profile import ModelProfile, model_profile
from simulator.profiles import nanoseconds
from traces.manifest import ModelInfo

CONF = Path(__file__).parents[2] / "conf"
TRACE = ModelInfo("recorded", 8, 64, 4, 49_152)


def read(group: str, name: str) -> dict[str, Any]:
    return yaml.safe_load((CONF / group / f"{name}.yaml").read_text(encoding="utf-8"))


def names(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def hardware(name: str = "rtx4090") -> HardwareProfile:
    return hardware_profile(read("hardware", name), f"conf/hardware/{name}.yaml")


def model(name: str = "qwen3-30b-a3b") -> ModelProfile:
    return model_profile(read("model", name), f"conf/model/{name}.yaml", TRACE)


def draft(name: str = "qwen3-4b-fp8") -> DraftProfile:
    return draft_profile(read("draft", name), f"conf/draft/{name}.yaml")


@pytest.mark.parametrize("machine", names("hardware"))
@pytest.mark.parametrize("target", names("model"))
@pytest.mark.parametrize("proposer", names("draft"))
def test_every_shipped_combination_gives_a_table(machine: str, target: str, proposer: str) -> None:
    profile = model(target)
    for dtype in profile.expert_bytes:
        table = cost_table(hardware(machine), profile, draft(proposer), 64, dtype=dtype)
        table.validate()
        assert len(table.cpu_ns) == len(table.gpu_ns) == len(table.dense_ns) == 65
        assert table.expert_bytes == profile.expert_bytes[dtype]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("qwen3-30b-a3b", 30.53e9),
        ("qwen3-235b-a22b", 235.09e9),
        ("deepseek-v2-lite", 15.71e9),
        ("mixtral-8x7b", 46.70e9),
        ("olmoe", 6.92e9),
        ("gpt-oss-20b", 20.91e9),
        ("gpt-oss-120b", 116.83e9),
    ],
)
def test_sizes_add_up_to_the_published_number_of_parameters(name: str, parameters: float) -> None:
    sizes = model(name)
    experts = sizes.moe_layers * sizes.experts * sizes.expert_bytes["fp16"]
    assert (experts + sizes.dense_bytes) / 2 == pytest.approx(parameters, rel=1e-3)
    matrices = 3 * sizes.hidden * sizes.expert_width
    assert sizes.expert_bytes["fp16"] == pytest.approx(2 * matrices, rel=1e-3)
    assert sizes.expert_bytes["fp8"] == pytest.approx(matrices, rel=1e-3)
    assert sizes.expert_bytes["int8"] == pytest.approx(matrices, rel=4e-3)
    assert 0.5 < sizes.expert_bytes["int4"] / matrices < 0.6


def test_known_times_of_a_qwen3_expert_on_the_4090() -> None:
    table = cost_table(hardware(), model(), draft(), 16)
    assert table.copy_ns == 375_984  # 9437184 bytes at 25.1 GB/s
    assert table.cpu_ns[1] == pytest.approx(145_000, rel=0.01)
    assert 18_000 <= table.gpu_ns[1] <= 25_000
    assert 4e6 <= table.draft_step_ns <= 7e6
    reuses = (table.copy_ns + table.copy_latency_ns) / (table.cpu_ns[1] - table.gpu_ns[1])
    assert 2.5 < reuses < 3.5


def test_the_stand_in_keeps_the_ratios_of_the_4090() -> None:
    real = cost_table(hardware(), model(), draft(), 8)
    played = cost_table(hardware("standin"), model("trace"), draft("pair"), 8)
    for field in ("cpu_ns", "gpu_ns"):
        ratio = getattr(real, field)[1] / real.copy_ns
        assert getattr(played, field)[1] / played.copy_ns == pytest.approx(ratio, rel=0.1)
    assert played.gpu_ns[1] < played.cpu_ns[1] < played.copy_ns


def test_times_are_flat_while_weights_are_read_and_rise_with_arithmetic() -> None:
    table = cost_table(hardware(), model(), draft(), 256)
    assert table.cpu_ns[1] == table.cpu_ns[10] < table.cpu_ns[64]
    doubled = table.cpu_ns[200] / table.cpu_ns[100]
    assert doubled == pytest.approx(2, rel=1e-4)
    assert table.gpu_ns[1] == table.gpu_ns[100]


def test_per_pass_costs_shrink_with_the_trace() -> None:
    whole = cost_table(hardware(), model(), draft(), 8)
    small = cost_table(hardware(), model(), draft(), 8, trace_layers=8)
    assert small.draft_step_ns == -(-whole.draft_step_ns * 8 // 48)
    assert small.pass_ns == -(-whole.pass_ns * 8 // 48)
    assert np.array_equal(small.cpu_ns, whole.cpu_ns)
    assert np.array_equal(small.dense_ns, whole.dense_ns)


def test_measured_decision_times_replace_those_of_the_profile() -> None:
    table = cost_table(hardware(), model(), draft(), 8, decision=DecisionTimes(1, 2, 3))
    chosen = (table.decision_layer_ns, table.decision_leave_ns, table.decision_draft_ns)
    assert chosen == (1, 2, 3)


def test_a_calibration_of_before_needs_no_new_key() -> None:
    rows = {key: [5] for key in ("cpu_ns", "gpu_ns", "dense_ns")} | {
        "rows": [1],
        "needs_ns": [0] * 5,
    }
    numbers = dict.fromkeys(
        ("context_ns_per_1024", "d2h_ns", "dispatch_ns", "return_ns", "copy_latency_ns", "copy_ns",
         "draft_step_ns", "pass_ns", "decision_layer_ns", "decision_leave_ns", "decision_draft_ns"),
        100,
    )  # fmt: skip
    shape = {"layers": 48, "hidden": 2048, "expert_width": 768, "expert_bytes": 9_437_184}
    measured = {"model": "m", "dtype": "fp16", "contention": 1000} | shape | rows | numbers
    values = read("hardware", "rtx4090") | {"measured": measured}
    table = cost_table(hardware_profile(values), model(), draft(), 1)
    assert table.router_ns == 0 and table.copy_ns == 100
    values["measured"] = measured | {"leave_share": 1024}
    told = cost_table(
        hardware_profile(values), model(), draft(), 1, decision=DecisionTimes(1, 7, 3)
    )
    assert told.router_ns == 7


def test_rounding_is_up_and_exact() -> None:
    assert nanoseconds(10, 1e10) == 1
    assert nanoseconds(11, 1e10) == 2
    assert nanoseconds(0, 3.0) == 0
    assert nanoseconds(3, 0.3) == 10_000_000_000


@pytest.mark.parametrize(
    ("group", "name", "path", "value", "message"),
    [
        ("hardware", "rtx4090", "link.bytes_per_second", 0, "bytes_per_second: 0"),
        ("hardware", "rtx4090", "link.latency_ns", -1, "latency_ns: -1"),
        ("hardware", "rtx4090", "gpu.expert_efficiency", 1.5, "expert_efficiency: 1.5"),
        ("hardware", "rtx4090", "cpu.contention", 1025, "contention: 1025"),
        ("hardware", "rtx4090", "cpu.contention", "half", "contention"),
        ("hardware", "rtx4090", "cpu.speed", 1, "speed"),
        ("model", "qwen3-30b-a3b", "top_k", 129, "top_k: 129"),
        ("model", "qwen3-30b-a3b", "moe_layers", 49, "moe_layers: 49"),
        ("model", "qwen3-30b-a3b", "dtype", "fp4", "fp4"),
        ("model", "qwen3-30b-a3b", "expert_bytes.fp8", 0, "expert_bytes.fp8: 0"),
        ("draft", "pair", "bytes", -5, "bytes: -5"),
    ],
)
def test_nonsense_is_refused_with_file_key_and_number(
    group: str, name: str, path: str, value: Any, message: str
) -> None:
    values = read(group, name)
    inner, *keys = values, *path.split(".")
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    build: Any = {"hardware": hardware_profile, "model": model_profile, "draft": draft_profile}
    with pytest.raises(UserError) as refused:
        build[group](values, f"{name}.yaml")
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"{name}.yaml")


def test_a_missing_key_is_named() -> None:
    values = read("hardware", "rtx4090")
    del values["handover"]["d2h_ns"]
    with pytest.raises(UserError, match="d2h_ns"):
        hardware_profile(values)


def test_null_sizes_need_a_trace() -> None:
    with pytest.raises(UserError, match="layers is null"):
        model_profile(read("model", "trace"))
    sizes = model("trace")
    assert (sizes.layers, sizes.experts, sizes.top_k) == (8, 64, 4)
    assert sizes.bytes_of_expert() == 49_152


def test_int8_experts_have_their_own_cost_table() -> None:
    whole, half = (
        cost_table(hardware(), model(), draft(), 64, dtype) for dtype in ("fp16", "int8")
    )
    assert half.expert_bytes / whole.expert_bytes == pytest.approx(0.5, rel=4e-3)
    assert half.copy_ns / whole.copy_ns == pytest.approx(0.5, rel=4e-3)
    assert half.cpu_ns[1] < 0.6 * whole.cpu_ns[1]
    assert half.gpu_ns[1] < whole.gpu_ns[1]
    assert half.cpu_ns[64] == whole.cpu_ns[64], "bound by arithmetic, which is not saved"


def test_unknown_dtype_lists_those_that_exist() -> None:
    with pytest.raises(UserError, match="fp16, fp8, int8, int4"):
        cost_table(hardware(), model(), draft(), 8, dtype="int3")
