"""Measured times become a cost table: straight lines between points, and on with the last slope."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from policies.errors import UserError
from traces.measured_times import MeasuredTimes, interpolated
from traces.strict_json import parse

TIMES = MeasuredTimes(
    model="m", dtype="float32", layers=2, hidden=8, expert_width=4, expert_bytes=384,
    rows=(1, 2, 4), cpu_ns=(100, 110, 201), gpu_ns=(10, 10, 20), dense_ns=(50, 60, 60),
    context_ns_per_1024=3, d2h_ns=4, dispatch_ns=5, return_ns=6, copy_latency_ns=7, copy_ns=80,
    contention=900, draft_step_ns=30, pass_ns=40, decision_layer_ns=2, decision_leave_ns=1,
    decision_draft_ns=1, needs_ns=(0, 1, 2, 3, 0),
)  # fmt: skip


def test_the_table_goes_through_the_points_and_on() -> None:
    table = TIMES.cost_table(6)
    assert table.cpu_ns.tolist() == [0, 100, 110, 156, 201, 247, 292]
    assert table.dense_ns.tolist() == [0, 50, 60, 60, 60, 60, 60]
    assert table.gpu_ns.dtype == np.int64
    assert (table.contention, table.copy_ns, table.draft_step_ns) == (900, 80, 30)
    assert TIMES.cost_table(6, draft=False).draft_step_ns == 0


def test_a_decision_after_a_join_delays_the_next_layer_by_its_share() -> None:
    assert TIMES.cost_table(6).router_ns == 0  # the host runs ahead
    half = replace(TIMES, leave_share=512, decision_leave_ns=101)
    assert half.cost_table(6).router_ns == 51 and half.held_up_ns(1000) == 500


def test_fewer_rows_than_measured_cost_as_the_fewest() -> None:
    assert interpolated((3, 5), (30, 50), np.array([1, 3, 4])).tolist() == [30, 30, 40]


def test_it_survives_a_file() -> None:
    plain = {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(TIMES).items()}
    assert parse(MeasuredTimes, plain, "here") == TIMES


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": (2, 1, 4)}, "rows"),
        ({"cpu_ns": (100, 90, 201)}, "must not fall"),
        ({"gpu_ns": (10, 10)}, "2 times for 3"),
        ({"needs_ns": (0, 1)}, "there are 5"),
        ({"leave_share": 1025}, "leave_share: 1025"),
    ],
)
def test_impossible_times_are_refused(change: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        replace(TIMES, **change)


def test_it_knows_which_model_it_is_of() -> None:
    assert TIMES.is_of(8, 4, 384) and not TIMES.is_of(8, 4, 192)
