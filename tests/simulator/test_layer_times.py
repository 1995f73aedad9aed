"""Two layers by hand, to the nanosecond: every placement, launch, lanes, contention, one host."""

from typing import Any

import pytest

from policies.api import CPU, FETCH, GPU, STREAM, Copy, LayerPlan
from simulator.reference import simulate
from tests.simulator.scenes import (
    ListReplay,
    Scripted,
    copies,
    layer_row,
    one_row,
    round_costs,
    settings,
    times,
)

ONE_PASS = ListReplay([[one_row([0, 1], [2, 3])]], experts=4)
TWO_PASSES = ListReplay([[one_row([0, 1], [2, 3])] * 2], experts=4)


def test_cpu_and_fetch_with_contention_then_a_late_prefetch() -> None:
    policy = Scripted(
        plans={
            (0, 0): LayerPlan({0: CPU, 1: FETCH}, demand=(Copy(1, 0),)),
            (0, 1): LayerPlan({2: FETCH, 3: CPU}, demand=(Copy(6, -1),)),
        },
        leaves={(0, 0): (Copy(6, 1),)},
    )
    log = simulate(ONE_PASS, policy, round_costs(), settings())
    # t1 = dense 500 + router 50; t2 = t1 + d2h 30 + decision 20. The copy runs 600..1000, so the
    # CPU,
    # from 640 on, does 180 of its 1000 ns until 1000 and the other 820 after.
    assert times(log, 0) == {
        "t0": 0, "t1": 550, "t2": 600, "gpu_begin": 1000, "gpu_end": 1200, "gpu_busy": 200,
        "cpu_begin": 640, "cpu_end": 1820, "cpu_busy": 1180, "join": 1880,
    }  # fmt: skip
    # The prefetch is issued at 1880 + 7. At t0 = 1880 it is FILLING: FETCH waits for it, but it has
    # landed (2287) before the plan is there (2480).
    assert times(log, 1) == {
        "t0": 1880, "t1": 2430, "t2": 2480, "gpu_begin": 2480, "gpu_end": 2680, "gpu_busy": 200,
        "cpu_begin": 2520, "cpu_end": 3520, "cpu_busy": 1000, "join": 3580,
    }  # fmt: skip
    assert copies(log) == [(1, 600, 600, 1000), (6, 1887, 1887, 2287)]
    assert log.copies["kind"].tolist() == [0, 2]
    assert log.copies["layer"].tolist() == [0, 0]
    assert log.passes["end_ns"].tolist() == [3580 + 90]
    assert layer_row(log, 1)["hit"].tolist() == [0, 0]
    assert layer_row(log, 1)["demand_slot"].tolist() == [-1]


@pytest.mark.parametrize(
    ("staging", "copied", "gpu_end"),
    [(1, [(600, 1000), (1200, 1600)], 1800), (2, [(600, 1000), (1000, 1400)], 1600)],
)
def test_streams_wait_for_their_buffer(
    staging: int, copied: list[tuple[int, int]], gpu_end: int
) -> None:
    streamed = LayerPlan({0: STREAM, 1: STREAM}, demand=(Copy(0, -1), Copy(1, -1)))
    policy = Scripted(plans={(0, 0): streamed})
    log = simulate(ONE_PASS, policy, round_costs(), settings(staging=staging))
    assert [(begin, end) for _, _, begin, end in copies(log)] == copied
    assert times(log, 0) == {
        "t0": 0, "t1": 550, "t2": 600, "gpu_begin": 1000, "gpu_end": gpu_end, "gpu_busy": 400,
        "cpu_begin": 600, "cpu_end": 600, "cpu_busy": 0, "join": gpu_end,
    }  # fmt: skip
    assert log.copies["slot"].tolist() == [3, 3 + staging - 1]


def test_a_fetch_behind_a_blocked_stream_waits_too() -> None:
    replay = ListReplay([[one_row([0, 1, 2])]], experts=4)
    plan = LayerPlan(
        {0: STREAM, 1: STREAM, 2: FETCH}, demand=(Copy(0, -1), Copy(1, -1), Copy(2, 0))
    )
    log = simulate(replay, Scripted(plans={(0, 0): plan}), round_costs(), settings())
    assert [(begin, end) for _, _, begin, end in copies(log)] == [
        (600, 1000), (1200, 1600), (1600, 2000)
    ]  # fmt: skip
    assert times(log, 0)["gpu_end"] == 2200


def filled(launch: str, lanes: str, **costs: Any) -> Any:
    """Two passes; the first fetches expert 0 of layer 0, the second computes it and has 1 on the
    CPU."""
    plans = {
        (0, 0): LayerPlan({0: FETCH, 1: CPU}, demand=(Copy(0, 0),)),
        (1, 0): LayerPlan({0: GPU, 1: CPU}),
    }
    chosen = settings(launch=launch, lanes=lanes)
    return simulate(TWO_PASSES, Scripted(plans=plans), round_costs(**costs), chosen)


@pytest.mark.parametrize(
    ("launch", "lanes", "gpu_begin", "join"),
    [
        ("late", "concurrent", 600, 1700),
        ("early", "concurrent", 550, 1700),
        ("late", "serial", 1700, 1900),
        ("early", "serial", 1700, 1900),
    ],
)
def test_launch_and_lanes(launch: str, lanes: str, gpu_begin: int, join: int) -> None:
    log = filled(launch, lanes)
    begin = int(log.passes["begin_ns"].iloc[1])
    # CPU: 640..1640, back at 1700.
    assert times(log, 0, 1) == {
        "t0": begin, "t1": begin + 550, "t2": begin + 600, "gpu_begin": begin + gpu_begin,
        "gpu_end": begin + gpu_begin + 200, "gpu_busy": 200, "cpu_begin": begin + 640,
        "cpu_end": begin + 1640, "cpu_busy": 1000, "join": begin + join,
    }  # fmt: skip
    assert layer_row(log, 0, 1)["hit"].tolist() == [1, 0]


def test_serial_lanes_hold_back_fetched_experts() -> None:
    log = filled("late", "serial")
    # Contention: copy 600..1000, CPU 640..1820, back 1880, then the GPU.
    assert times(log, 0)["gpu_begin"] == 1880
    assert times(log, 0)["join"] == 2080


def resident_both(**changes: Any) -> Any:
    """Pass 0 fetches experts 0 and 1 of layer 0; pass 1 finds both."""
    plans = {
        (0, 0): LayerPlan({0: FETCH, 1: FETCH}, demand=(Copy(0, 0), Copy(1, 1))),
        (1, 0): LayerPlan({0: GPU, 1: GPU}),
    }
    costs = round_costs(**changes)
    return simulate(TWO_PASSES, Scripted(plans=plans), costs, settings(launch="early"))


def test_early_launch_joins_without_the_host() -> None:
    log = resident_both()
    begin = int(log.passes["begin_ns"].iloc[1])
    assert times(log, 0, 1)["gpu_begin"] == begin + 550
    assert times(log, 0, 1)["join"] == begin + 950


def test_a_slow_host_lags_behind_an_early_join() -> None:
    log = resident_both(decision_layer_ns=2000)
    begin = int(log.passes["begin_ns"].iloc[1])
    first, second = times(log, 0, 1), times(log, 1, 1)
    assert first["join"] == begin + 950
    assert first["t2"] == begin + 550 + 30 + 2000
    # The host decides in order: layer 0 until 2580, its end until 2587, then layer 1.
    assert second["t0"] == begin + 950
    assert second["t1"] == begin + 1500
    assert second["t2"] == begin + 2587 + 2000


def test_copies_of_a_lagging_host_enter_the_link_late() -> None:
    plans = {
        (0, 0): LayerPlan({0: FETCH, 1: FETCH}, demand=(Copy(0, 0), Copy(1, 1))),
        (1, 0): LayerPlan({0: GPU, 1: GPU}),
    }
    policy = Scripted(plans=plans, leaves={(1, 0): (Copy(6, 2),)})
    log = simulate(
        TWO_PASSES, policy, round_costs(decision_layer_ns=2000), settings(launch="early")
    )
    begin = int(log.passes["begin_ns"].iloc[1])
    assert copies(log)[-1] == (6, begin + 2587, begin + 2587, begin + 2987)


def test_context_makes_attention_longer() -> None:
    replay = ListReplay([[one_row([0, 1])] * 3], experts=4)
    log = simulate(replay, Scripted(), round_costs(context_ns_per_1024=1_024_000), settings())
    dense = (log.layers["t1_ns"] - log.layers["t0_ns"]).tolist()
    assert dense == [550, 1550, 2550]


def test_gpu_runs_copies_in_landing_order_after_residents() -> None:
    # Prefetched at the end of pass 0's layer 1, still on the link in pass 1: lands before the
    # fetch.
    replay = ListReplay([[one_row([0, 1])] * 2], experts=4)
    plans = {
        (0, 0): LayerPlan({0: CPU, 1: CPU}),
        (1, 0): LayerPlan({0: FETCH, 1: FETCH}, demand=(Copy(0, 0), Copy(1, -1))),
    }
    costs = round_costs(copy_ns=2000)
    log = simulate(replay, Scripted(plans=plans, leaves={(0, 0): (Copy(1, 1),)}), costs, settings())
    (_, _, _, first), (_, _, begin, second) = copies(log)
    assert begin == first  # the link was still busy with the prefetch
    assert times(log, 0, 1)["gpu_begin"] == first
    assert times(log, 0, 1)["gpu_end"] == second + 200
    assert times(log, 0, 1)["gpu_busy"] == 400


def test_an_expert_may_be_streamed_now_and_prefetched_for_later() -> None:
    replay = ListReplay([[one_row([0, 1])] * 2], experts=4)
    plans = {
        (0, 0): LayerPlan(
            {0: STREAM, 1: STREAM},
            demand=(Copy(0, -1), Copy(1, -1)),
            prefetch=(Copy(0, 0),),
        )
    }
    # A layer long enough for three credits, a head long enough for the copies to land in.
    costs = round_costs(dense_ns=round_costs().dense_ns * 2, pass_ns=1000)
    log = simulate(replay, Scripted(plans=plans), costs, settings())
    begun = [(begin, end) for _, _, begin, end in copies(log)]
    assert begun == [(1100, 1500), (1700, 2100), (2100, 2500)]
    assert times(log, 0)["gpu_end"] == 2300
    assert layer_row(log, 0, 1)["hit"].tolist() == [1, 0]


def test_early_launch_learns_of_a_late_prefetch_from_the_plan_alone() -> None:
    plans = {
        (0, 0): LayerPlan({0: FETCH, 1: CPU}, demand=(Copy(0, 0),)),
        (1, 0): LayerPlan({0: GPU, 1: FETCH}, demand=(Copy(1, -1),)),
    }
    # Issued at the end of the last layer, FILLING at t0, landed before t1 and long before the plan.
    policy = Scripted(plans=plans, leaves={(0, 1): (Copy(1, 1),)})
    costs = round_costs(decision_layer_ns=2000)
    log = simulate(TWO_PASSES, policy, costs, settings(launch="early"))
    begin = int(log.passes["begin_ns"].iloc[1])
    assert begin < copies(log)[1][3] < begin + 550
    assert times(log, 0, 1)["gpu_begin"] == begin + 550
    assert times(log, 0, 1)["t2"] == begin + 2580
    assert times(log, 0, 1)["gpu_end"] == begin + 2580 + 200
