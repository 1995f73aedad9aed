"""metrics on a run log whose figures are computed by hand in the comments."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runlog_samples import (
    CPU,
    DEMAND,
    FETCH,
    GPU,
    PREFETCH,
    STREAM,
    STREAMED,
    add_copy,
    add_layer,
    add_pass,
    fill_randomly,
    run_info,
)

from policies.errors import UserError
from traces.metrics import Metrics, metrics
from traces.runlog import RunLogBuilder


def hand_made() -> RunLogBuilder:
    """Request 0 is warm-up; request 1 has a prefill (1000..1100) and two passes (1100..1400,
    1400..1700).

    Each of its layers has the lanes of runlog_samples.add_layer unless said otherwise.
    """
    builder = RunLogBuilder(run_info())
    add_layer(builder, 0, 0, 0, hit=[1, 1], decision_ns=999)
    add_copy(builder, 90, pass_index=0, kind=DEMAND, bytes=7777, begin_ns=10, landing_ns=1000)
    add_pass(builder, 0, 0, 1000, warmup=True, committed=50)

    add_layer(builder, 1, 0, 1000, hit=[1, 1], decision_ns=999)
    add_pass(builder, 1, 1000, 1100, request=1, phase=0, gamma=0, accepted=0, committed=0)

    for step in range(2):
        builder.add_draft(pass_index=2, step=step, token=3, t_ns=1100 + step, decision_ns=10)
    add_layer(builder, 2, 0, 1200)
    # Everything on the CPU: the GPU lane has begin = end.
    lanes = {"gpu_begin_ns": 1310, "gpu_end_ns": 1310, "placement": [CPU, STREAM]}
    add_layer(builder, 2, 1, 1290, **lanes, decision_ns=6)
    add_pass(builder, 2, 1100, 1400, request=1, accepted=2, committed=3, draft_end_ns=1200)

    # The GPU begins early, computes 25 of its 60 ns and waits for a copy in between.
    lanes = {"gpu_begin_ns": 1510, "gpu_end_ns": 1570, "gpu_busy_ns": 25, "counts": [3, 1]}
    add_layer(builder, 3, 0, 1500, **lanes)
    lanes = {"placement": [FETCH, GPU], "leave_decision_ns": 30}
    add_layer(builder, 3, 1, 1590, **lanes, experts=[1, 2], hit=[0, 1])
    add_pass(builder, 3, 1400, 1700, request=1, accepted=0, committed=1, draft_end_ns=1450)

    add_copy(builder, 0, kind=DEMAND, pass_index=2, bytes=100, begin_ns=1050, landing_ns=1150)
    add_copy(
        builder, 1, kind=STREAMED, slot=-1, pass_index=2, bytes=10, begin_ns=1200, landing_ns=1230
    )
    add_copy(
        builder, 2, kind=STREAMED, slot=-1, pass_index=3, bytes=20, begin_ns=1220, landing_ns=1250
    )
    add_copy(
        builder, 3, kind=DEMAND, slot=1, pass_index=3, bytes=200, begin_ns=1650, landing_ns=1800
    )
    return builder


@pytest.fixture(scope="module")
def found() -> Metrics:
    return metrics(hand_made().build())


def test_counts_and_rates(found: Metrics) -> None:
    assert (found.requests, found.passes, found.committed_tokens) == (1, 2, 4)
    assert found.decode_seconds == pytest.approx(600e-9)
    assert found.tokens_per_second == pytest.approx(4 / 600e-9)
    assert found.seconds_per_token == pytest.approx(150e-9)
    assert found.tokens_per_pass == 2.0
    assert found.mean_gamma == 2.0
    # From the begin of the prefill at 1000 to the end of the first pass at 1400, and to 1700.
    assert found.time_to_first_token_seconds == pytest.approx(400e-9)
    assert found.end_to_end_tokens_per_second == pytest.approx(4 / 700e-9)
    assert found.draft_seconds == pytest.approx(150e-9)


def test_acceptance(found: Metrics) -> None:
    # Accepted 2 and 0 of 2 and 2: one rejection, in the second pass.
    assert found.acceptance_reached == pytest.approx(2 / 3)
    assert found.acceptance_proposed == pytest.approx(2 / 4)


def test_hits_and_placements(found: Metrics) -> None:
    # hits [1,0] [1,0] [1,0] [0,1] with counts [1,2] [1,2] [3,1] [1,2].
    assert found.hit_rate_per_expert == pytest.approx(4 / 8)
    assert found.hit_rate_per_token == pytest.approx((1 + 1 + 3 + 2) / 13)
    assert found.share_gpu == pytest.approx(3 / 8)
    assert found.share_cpu == pytest.approx(3 / 8)
    assert found.share_fetch == pytest.approx(1 / 8)
    assert found.share_stream == pytest.approx(1 / 8)
    assert found.active_experts_per_layer == 2.0


def test_bytes(found: Metrics) -> None:
    assert (found.bytes_demand, found.bytes_stream, found.bytes_prefetch) == (300, 30, 0)
    assert found.bytes_copied == 330


def test_waits(found: Metrics) -> None:
    # GPU, from t2 (layers 1, 2, 4) or its early begin (3) to the join, minus work:
    # 70 - 30, 70 - 0, 80 - 25, 70 - 30. Idle counts from t1: 80 in all four layers.
    assert found.gpu_stall_seconds == pytest.approx((40 + 70 + 55 + 40) * 1e-9)
    assert found.gpu_idle_seconds == pytest.approx((50 + 80 + 55 + 50) * 1e-9)
    # CPU: 70 after t2 and 90 after t0, of which it computes 50.
    assert found.cpu_stall_seconds == pytest.approx(4 * 20e-9)
    assert found.cpu_idle_seconds == pytest.approx(4 * 40e-9)


def test_link(found: Metrics) -> None:
    # Inside 1100..1700: 1100-1150, 1200-1250 (two that overlap), 1650-1700.
    assert found.link_busy_share == pytest.approx(150 / 600)


def test_decisions(found: Metrics) -> None:
    assert found.decision_seconds == pytest.approx((4 + 6 + 4 + 4 + 30 + 20) * 1e-9)
    assert found.mean_layer_decision_seconds == pytest.approx(48e-9 / 4)
    assert found.mean_draft_decision_seconds == pytest.approx(10e-9)


def test_approximate_is_passed_on() -> None:
    log = dataclasses.replace(hand_made().build(), info=run_info(approximate=True))
    assert metrics(log).approximate


def test_a_run_without_copies_or_drafts() -> None:
    builder = RunLogBuilder(run_info())
    add_layer(builder, 0, 0, 0)
    add_pass(builder, 0, 0, 100, gamma=0, accepted=0, committed=1)
    found = metrics(builder.build())
    assert found.bytes_copied == 0 and found.prefetches == 0
    assert found.link_busy_share == 0.0
    assert math.isnan(found.acceptance_proposed) and math.isnan(found.acceptance_reached)
    assert math.isnan(found.mean_draft_decision_seconds)


def test_a_run_of_warm_up_only_is_refused() -> None:
    builder = RunLogBuilder(run_info())
    add_pass(builder, 0, 0, 100, warmup=True)
    with pytest.raises(UserError, match="'lru': no decode pass outside warm-up"):
        metrics(builder.build())


def test_time_to_first_token_is_a_mean_over_requests() -> None:
    builder = RunLogBuilder(run_info())
    for index, (request, begin, end) in enumerate([(4, 0, 100), (4, 100, 150), (9, 500, 800)]):
        add_layer(builder, index, 0, begin)
        add_pass(builder, index, begin, end, request=request)
    found = metrics(builder.build())
    assert found.requests == 2
    assert found.time_to_first_token_seconds == pytest.approx((100 + 300) / 2 * 1e-9)
    assert found.end_to_end_tokens_per_second == pytest.approx(6 / 450e-9)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 200)), max_size=12))
def test_link_time_by_counting_nanoseconds(copies: list[tuple[int, int]]) -> None:
    builder = RunLogBuilder(run_info())
    for index, begin in enumerate((100, 300, 700)):
        add_layer(builder, index, 0, begin)
        add_pass(builder, index, begin, begin + 150)
    line = np.zeros(1200, np.bool_)
    for number, (begin, length) in enumerate(copies):
        add_copy(builder, number, begin_ns=begin, landing_ns=begin + length, kind=STREAMED, slot=-1)
        line[begin : begin + length] = True
    inside = np.zeros(1200, np.bool_)
    for begin in (100, 300, 700):
        inside[begin : begin + 150] = True
    found = metrics(builder.build())
    assert found.link_busy_share == pytest.approx((line & inside).sum() / inside.sum())


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 500))
def test_invariants_of_any_run(seed: int) -> None:
    builder = RunLogBuilder(run_info())
    fill_randomly(builder, 7, seed)
    found = metrics(builder.build())
    shares = (found.share_gpu, found.share_cpu, found.share_fetch, found.share_stream)
    assert sum(shares) == pytest.approx(1.0)
    assert found.tokens_per_second * found.seconds_per_token == pytest.approx(1.0)
    outcomes = found.prefetches_useful + found.prefetches_late + found.prefetches_wasted
    assert found.prefetches == outcomes == 7
    assert found.bytes_copied == found.bytes_demand + found.bytes_stream + found.bytes_prefetch
    assert 0 <= found.hit_rate_per_expert <= 1 and 0 <= found.hit_rate_per_token <= 1
    assert found.gpu_idle_seconds >= found.gpu_stall_seconds >= 0
    assert found.cpu_idle_seconds >= found.cpu_stall_seconds >= 0


def test_prefetches_are_counted_outside_warm_up_only() -> None:
    builder = RunLogBuilder(run_info())
    add_copy(builder, 0, pass_index=0, kind=PREFETCH)
    add_copy(builder, 1, pass_index=1, kind=PREFETCH, slot=1, expert=5)
    add_pass(builder, 0, 0, 100, warmup=True)
    add_pass(builder, 1, 100, 200)
    add_layer(builder, 1, 0, 100)
    assert metrics(builder.build()).prefetches == 1
