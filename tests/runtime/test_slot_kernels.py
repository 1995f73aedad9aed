"""All ways to compute experts in slots give the same numbers and touch nothing else."""

import os
from dataclasses import asdict
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

from runtime.expert_layout import ExpertLayout
from runtime.expert_math import Gating, activated
from runtime.kernel_choice import slot_kernel
from runtime.pace import Pace
from runtime.slot_kernels import HostLoop, MaskedLoop, SlotKernel
from runtime.slots import SlotPool
from runtime.standin import StandIn

# Before the kernels are decorated: they are then run by Triton's interpreter, on the CPU.
os.environ["TRITON_INTERPRET"] = "1"
triton = pytest.importorskip("triton", reason="Triton is not installed")
triton_experts = pytest.importorskip("runtime.triton_experts")

EXPERTS, TOP_K, HIDDEN, WIDTH = 8, 3, 48, 40
UNTOUCHED = 7.0
SILU = activated(functional.silu)
TABLE = [-1, 2, -1, 0, 5, -1, 1, -1]
ULP = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def filled_pool(dtype: torch.dtype) -> SlotPool:
    pool = SlotPool(ExpertLayout(2, EXPERTS, HIDDEN, WIDTH, dtype), 5, 1, StandIn({}))
    generator = torch.Generator().manual_seed(0)
    for slot in range(6):
        for part in (pool.gate_up(slot), pool.down(slot)):
            part.copy_(0.2 * torch.randn(part.shape, generator=generator))
    return pool


def inputs(rows: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(rows)
    hidden = torch.randn(rows, HIDDEN, generator=generator).to(dtype)
    chosen = [torch.randperm(EXPERTS, generator=generator)[:TOP_K] for _ in range(rows)]
    return hidden, torch.stack(chosen)


def computed(kernel: SlotKernel, rows: int, dtype: torch.dtype, table: list[int]) -> torch.Tensor:
    hidden, experts = inputs(rows, dtype)
    contributions = torch.full((rows, TOP_K, HIDDEN), UNTOUCHED, dtype=dtype)
    kernel.compute(hidden, experts, torch.tensor(table, dtype=torch.int32), contributions)
    return contributions


@pytest.mark.parametrize("dtype", list(ULP), ids=str)
@pytest.mark.parametrize("rows", [1, 5, 20])  # the last needs two blocks of rows
@pytest.mark.parametrize("kind", ["masked", "triton"])
def test_kernels_agree(kind: str, rows: int, dtype: torch.dtype) -> None:
    pool = filled_pool(dtype)
    reference = computed(HostLoop(pool, SILU, Pace(None)), rows, dtype, TABLE)
    masked = MaskedLoop(pool, SILU)
    kernel = masked if kind == "masked" else triton_experts.TritonExperts(pool)
    ours = computed(kernel, rows, dtype, TABLE)
    scale = reference.abs().max().item()
    torch.testing.assert_close(ours, reference, atol=ULP[dtype] * scale, rtol=ULP[dtype])
    _, experts = inputs(rows, dtype)
    held = torch.tensor(TABLE)[experts] >= 0
    assert (ours[~held] == UNTOUCHED).all()
    assert held.any() and not (ours[held] == UNTOUCHED).all()


def test_an_empty_table_and_foreign_experts_change_nothing() -> None:
    pool = filled_pool(torch.float32)
    for kernel in (MaskedLoop(pool, SILU), triton_experts.TritonExperts(pool)):
        assert (computed(kernel, 3, torch.float32, [-1] * EXPERTS) == UNTOUCHED).all()


def test_nan_in_other_slots_stays_there() -> None:
    pool = filled_pool(torch.float32)
    for slot in (3, 4):
        pool.rows[slot].fill_(0xFF)
    for kernel in (MaskedLoop(pool, SILU), triton_experts.TritonExperts(pool)):
        assert not computed(kernel, 5, torch.float32, TABLE).isnan().any()


def test_numbers_known_to_the_host_are_the_only_ones_computed() -> None:
    pool = filled_pool(torch.float32)
    kernel = MaskedLoop(pool, SILU)
    hidden, experts = inputs(5, torch.float32)
    table = torch.tensor(TABLE, dtype=torch.int32)
    some, all_ = (torch.full((5, TOP_K, HIDDEN), UNTOUCHED) for _ in range(2))
    kernel.compute(hidden, experts, table, some, [3])
    kernel.compute(hidden, experts, table, all_)
    assert torch.equal(some[experts == 3], all_[experts == 3])
    assert (some[experts != 3] == UNTOUCHED).all()


def test_the_fallback_asks_the_device_nothing() -> None:
    """Fake tensors have no values: `.item()`, `.tolist()`, `nonzero` and masks as index raise."""
    layout = ExpertLayout(2, EXPERTS, HIDDEN, WIDTH, torch.float32)
    with FakeTensorMode():
        pool = SlotPool(layout, 5, 1, StandIn({}))
        hidden, experts = torch.empty(5, HIDDEN), torch.zeros(5, TOP_K, dtype=torch.int64)
        table = torch.zeros(EXPERTS, dtype=torch.int32)
        contributions = torch.empty(5, TOP_K, HIDDEN)
        MaskedLoop(pool, SILU).compute(hidden, experts, table, contributions)
        with pytest.raises(Exception, match=r"data-dependent|\.tolist\(\)|aten\._local_scalar"):
            HostLoop(pool, SILU, Pace(None)).compute(hidden, experts, table, contributions)


class Elsewhere(StandIn):
    """A device whose memory the host must not read."""

    torch_device = torch.device("meta")


@pytest.mark.parametrize(
    ("gating", "changes", "expected"),
    [
        (SILU, {"dtype": torch.bfloat16}, "TritonExperts"),
        (activated(torch.nn.SiLU()), {}, "TritonExperts"),
        (activated(functional.gelu), {}, "MaskedLoop"),
        (SILU, {"dtype": torch.float64}, "MaskedLoop"),
        (SILU, {"biased": True}, "MaskedLoop"),
        (SILU, {"quantised": True}, "MaskedLoop"),
    ],
)
def test_the_kernel_follows_device_and_experts(
    gating: Gating, changes: dict[str, Any], expected: str
) -> None:
    layout = ExpertLayout(**{**asdict(filled_pool(torch.float32).layout), **changes})
    pool = SlotPool(layout, 5, 1, StandIn({}))
    chosen = slot_kernel(Elsewhere({}), pool, gating, Pace(None))
    assert type(chosen).__name__ == expected
    assert isinstance(slot_kernel(StandIn({}), pool, gating, Pace(None)), HostLoop)
