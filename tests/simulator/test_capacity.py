"""Slots from a ratio, a number or VRAM, and what is refused."""

import pytest

from policies.errors import UserError
from simulator.capacity import checked_slots, scale_slots, slots_from_ratio, slots_from_vram
from tests.simulator.test_profiles import draft, hardware, model


def test_ratio_is_exact_on_its_decimal_value() -> None:
    assert slots_from_ratio(0.17, 48, 128) == 1044
    assert slots_from_ratio(0.29, 10, 10) == 29  # 0.29 * 100 is 28.999... in binary
    assert slots_from_ratio(1, 2, 3) == 6
    assert slots_from_ratio(1.0, 2, 3) == 6


@pytest.mark.parametrize("ratio", [0, 0.0, -0.1, 1.01, 17])
def test_impossible_ratios_are_refused(ratio: float) -> None:
    with pytest.raises(UserError, match=f"cache_ratio={ratio}"):
        slots_from_ratio(ratio, 48, 128)


def test_a_ratio_below_one_slot_names_the_least() -> None:
    with pytest.raises(UserError, match=r"0 slots of 8 experts; use at least 0\.125"):
        slots_from_ratio(0.1, 2, 4)


@pytest.mark.parametrize("slots", [0, -3, 9])
def test_slots_beyond_the_experts_are_refused(slots: int) -> None:
    assert checked_slots(8, 2, 4) == 8
    with pytest.raises(UserError, match=rf"slots={slots}: must be 1..8"):
        checked_slots(slots, 2, 4)


def test_vram_is_what_is_left_after_everything_else() -> None:
    machine, target, proposer = hardware(), model(), draft()
    left = (
        machine.gpu.vram_bytes
        - machine.gpu.reserved_bytes
        - target.dense_bytes
        - 8192 * (98_304 + 147_456)
        - proposer.bytes
        - 4 * 9_437_184
    )
    slots = slots_from_vram(machine, target, proposer, context=8192, staging=4)
    assert slots == left // 9_437_184
    assert 1000 < slots < 1600
    without = slots_from_vram(machine, target, draft("none"), context=8192, staging=4)
    assert without - slots == pytest.approx(500, rel=0.2)  # what the draft costs
    assert slots_from_vram(machine, target, proposer, 8192, 4, "int4") > 3 * slots


def test_no_more_slots_than_experts() -> None:
    assert slots_from_vram(hardware(), model("olmoe"), draft("none"), 1024, 4, "int4") == 1024


def test_a_negative_budget_shows_the_sum_and_the_remedy() -> None:
    with pytest.raises(UserError) as refused:
        slots_from_vram(hardware(), model("qwen3-235b-a22b"), draft(), context=32_768, staging=4)
    message = str(refused.value)
    for part in ("25.76 GB", "dense 15.99", "KV 6.31", "draft 9.24", "shorten the context"):
        assert part in message


def test_slots_of_a_big_model_scale_to_a_small_trace() -> None:
    assert scale_slots(1024, model(), 8, 64) == 1024 * 512 // 6144
    with pytest.raises(UserError, match="less than one of 1 x 2 experts"):
        scale_slots(3, model(), 1, 2)
