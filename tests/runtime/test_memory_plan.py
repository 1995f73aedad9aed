"""Memory is planned with numbers before it is taken; sizes only, nothing is allocated here."""

import pytest
import torch

from policies.errors import UserError
from runtime.device import Memory
from runtime.expert_layout import ExpertLayout
from runtime.memory_plan import GIB, check_memory, check_reservation, plan_memory

QWEN3 = ExpertLayout(layers=48, experts=128, hidden=2048, width=768, dtype=torch.bfloat16)


def power_of_two(size: int) -> int:
    """How torch's page-locking allocator rounds each block."""
    return 1 << (size - 1).bit_length()


def exact_pages(size: int) -> int:
    return -(-size // 4096) * 4096


def test_sizes_of_a_real_model() -> None:
    assert QWEN3.expert_bytes == QWEN3.row_bytes == 9_437_184
    plan = plan_memory(QWEN3, slots=100, staging=2)
    assert plan.host == 54 * GIB
    assert plan.device == 102 * 9_437_184


def test_a_block_per_expert_is_refused_with_both_numbers() -> None:
    with pytest.raises(UserError, match=r"96\.00 GiB for 54\.00 GiB"):
        check_reservation(QWEN3.total, QWEN3.expert_bytes, power_of_two)


def test_one_exact_block_takes_at_most_a_hundredth_more() -> None:
    taken = check_reservation(1, QWEN3.total * QWEN3.row_bytes, exact_pages)
    assert taken <= 54 * GIB * 1.01


def test_too_little_host_memory_is_refused_with_both_numbers() -> None:
    plan = plan_memory(QWEN3, slots=100, staging=2)
    with pytest.raises(UserError, match=r"need 54\.00 GiB of host memory, 41\.20 GiB"):
        check_memory(plan, Memory(int(41.2 * GIB), 24 * GIB))


def test_too_little_device_memory_is_refused_with_both_numbers() -> None:
    plan = plan_memory(QWEN3, slots=3_000, staging=2, others=2 * GIB)
    with pytest.raises(UserError, match=r"need 26\.38 \+ 2\.00 GiB of device memory, 24\.00"):
        check_memory(plan, Memory(64 * GIB, 24 * GIB))


def test_what_fits_is_accepted() -> None:
    check_memory(plan_memory(QWEN3, slots=1_000, staging=2), Memory(64 * GIB, 24 * GIB))


def test_rows_start_at_cache_lines() -> None:
    odd = ExpertLayout(layers=1, experts=2, hidden=8, width=3, dtype=torch.bfloat16)
    assert (odd.expert_bytes, odd.row_bytes) == (144, 192)
