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


KV = 96 * 1024  # bytes of keys and values per token


def test_the_parts_add_up_and_are_named() -> None:
    plan = plan_memory(
        QWEN3, slots=3_000, staging=2, dense=3 * GIB, draft=GIB, kv_token_bytes=KV, context=8_192
    )
    assert plan.parts() == {
        "dense": 3 * GIB, "draft": GIB, "kv": 768 * 2**20, "staging": 2 * 9_437_184,
        "slots": 3_000 * 9_437_184,
    }  # fmt: skip
    assert plan.device == sum(plan.parts().values())


def test_too_little_device_memory_is_refused_with_what_would_fit() -> None:
    asked = {"staging": 2, "dense": 2 * GIB, "kv_token_bytes": KV, "context": 4_096}
    plan = plan_memory(QWEN3, slots=3_000, **asked)
    message = (
        r"dense 2\.00 GiB \+ kv 0\.38 GiB \+ staging 18\.00 MiB \+ slots 26\.37 GiB = "
        r"28\.76 GiB of device memory, 24\.00 GiB are available; lower slots to 2458$"
    )
    with pytest.raises(UserError, match=message):
        check_memory(plan, Memory(64 * GIB, 24 * GIB))
    check_memory(plan_memory(QWEN3, slots=2_458, **asked), Memory(64 * GIB, 24 * GIB))
    with pytest.raises(UserError):
        check_memory(plan_memory(QWEN3, slots=2_459, **asked), Memory(64 * GIB, 24 * GIB))


def test_a_long_context_can_be_what_is_too_much() -> None:
    asked = {"slots": 2_400, "staging": 0, "kv_token_bytes": KV}
    memory = Memory(64 * GIB, 24 * GIB)
    with pytest.raises(UserError, match=r"lower slots to \d+ or lower context to 31744 tokens"):
        check_memory(plan_memory(QWEN3, **asked, context=40_000), memory)
    check_memory(plan_memory(QWEN3, **asked, context=31_744), memory)
    with pytest.raises(UserError):
        check_memory(plan_memory(QWEN3, **asked, context=31_745), memory)


def test_where_neither_helps_a_smaller_model_is_advised() -> None:
    plan = plan_memory(QWEN3, slots=100, staging=2, dense=25 * GIB, kv_token_bytes=KV, context=10)
    with pytest.raises(UserError, match="use a smaller target or draft"):
        check_memory(plan, Memory(64 * GIB, 24 * GIB))


def test_shared_memory_is_counted_once() -> None:
    plan = plan_memory(QWEN3, slots=1_000, staging=2)
    check_memory(plan, Memory(63 * GIB, 63 * GIB, shared=True))
    with pytest.raises(UserError, match=r"6\.00 GiB are available beside the experts"):
        check_memory(plan, Memory(60 * GIB, 60 * GIB, shared=True))


def test_what_fits_is_accepted() -> None:
    check_memory(plan_memory(QWEN3, slots=1_000, staging=2), Memory(64 * GIB, 24 * GIB))


def test_rows_start_at_cache_lines() -> None:
    odd = ExpertLayout(layers=1, experts=2, hidden=8, width=3, dtype=torch.bfloat16)
    assert (odd.expert_bytes, odd.row_bytes) == (144, 192)
