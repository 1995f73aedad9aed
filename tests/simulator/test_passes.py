"""Drafting, prefill, requests, cold starts and priced needs, by hand."""

from typing import Any

import numpy as np
import pytest

from policies.api import Copy
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

WIDE = [[[0, 1], [2, 3]], [[1, 2], [2, 3]], [[0, 1], [0, 3]]]


def test_drafting_leaves_the_link_to_prefetches() -> None:
    replay = ListReplay([[WIDE] * 3], experts=4, accepted=1)
    policy = Scripted(drafts={(0, 0): (Copy(1, 0),), (0, 1): (Copy(6, 1), Copy(7, 2))})
    log = simulate(replay, policy, round_costs(), settings(gamma=2))
    assert copies(log) == [(1, 705, 705, 1105), (6, 1405, 1405, 1805), (7, 1405, 1805, 2205)]
    assert log.copies["layer"].tolist() == [-1, -1, -1]
    drafts = log.drafts[log.drafts["pass_index"] == 0]
    assert drafts["t_ns"].tolist() == [700, 1400]
    assert drafts["token"].tolist() == [101, 102]
    assert drafts["landed"].tolist() == [0, 1]
    # cap = min(12, time left // 390 + 4), less copies in flight
    assert drafts["credits"].tolist() == [1 + 4, 0 + 4]
    first = times(log, 0)
    assert (first["t0"], first["t1"]) == (1400, 1400 + 540 + 50)
    assert layer_row(log, 0)["hit"].tolist() == [0, 1, 0]
    assert layer_row(log, 0)["counts"].tolist() == [2, 3, 1]
    passes = log.passes
    assert passes["draft_end_ns"].iloc[0] == 1400
    assert passes["accepted"].tolist() == [1, 1]
    assert passes["committed"].tolist() == [2, 1]
    assert passes["begin_ns"].tolist() == [0, passes["end_ns"].iloc[0]]


def test_window_may_change_from_pass_to_pass() -> None:
    replay = ListReplay([[WIDE] * 4], experts=4, accepted=1)
    log = simulate(replay, Scripted(gammas=[2, 0, 1]), round_costs(), settings(gamma=2))
    assert log.passes["gamma"].tolist() == [2, 0, 1]
    assert log.passes["rows"].tolist() == [3, 1, 2]
    assert log.passes["committed"].tolist() == [2, 1, 1]
    drafted = (log.passes["draft_end_ns"] - log.passes["begin_ns"]).tolist()
    assert drafted == [1400, 0, 700]


@pytest.mark.parametrize(
    ("needs", "layer_ns", "step_ns"),
    [((), 0, 0), (("router_mass",), 3, 0), (("next_layer_1",), 5, 0), (("draft_tokens",), 0, 13)],
)
def test_declared_needs_cost_time(needs: tuple[str, ...], layer_ns: int, step_ns: int) -> None:
    columns = frozenset({"router_weights", "next_layer_1"})
    replay = ListReplay([[WIDE]], experts=4, columns=columns)
    policy = Scripted(needs=frozenset(needs))
    log = simulate(replay, policy, round_costs(), settings(gamma=1))
    assert log.passes["draft_end_ns"].iloc[0] == 700 + step_ns
    row = times(log, 0)
    assert row["t2"] - row["t1"] == 30 + 20 + layer_ns
    routing = policy.routings[0]
    assert (routing.weights is not None) == ("router_mass" in needs)
    assert (routing.predicted is not None) == ("next_layer_1" in needs)
    assert policy.tokens == ([101] if "draft_tokens" in needs else [-1])


def prompted(rows: int, staging: int = 1, **changes: Any) -> Any:
    prompt = np.zeros((rows, 1, 2), np.uint16)
    prompt[:, :, 1] = 1
    prompt[0, 0, 1] = 2
    replay = ListReplay([[one_row([0, 1])]], experts=4, prompts=[prompt])
    costs = round_costs(**changes)
    return simulate(replay, Scripted(), costs, settings(staging=staging))


def test_prefill_takes_the_cheaper_way_for_each_expert() -> None:
    # Expert 0 has 3 rows (CPU 1600, stream 400 + 260), 1 has 2 (1300, 630), 2 has 1 (1000, 600).
    log = prompted(3)
    row = layer_row(log, 0)
    assert row["placement"].tolist() == [4, 4, 4]
    # No decision; one buffer, so each copy waits for the GPU, which takes 260, 230 and 200.
    assert times(log, 0)["t2"] == 540 + 50 + 30
    assert [(begin, end) for _, _, begin, end in copies(log)] == [
        (620, 1020), (1280, 1680), (1910, 2310)
    ]  # fmt: skip
    assert log.passes["phase"].tolist() == [0, 1]
    assert log.passes["end_ns"].iloc[0] == 2310 + 200 + 90
    assert log.passes["begin_ns"].iloc[1] == log.passes["end_ns"].iloc[0]
    assert "prefill" not in log.info.notes


def test_streams_of_prefill_take_the_buffers_in_turn() -> None:
    log = prompted(3, staging=2)
    assert log.copies["slot"].tolist() == [3, 4, 3]
    # The third waits for the first expert: landed at 1020, computed by 1280.
    assert [(begin, end) for _, _, begin, end in copies(log)] == [
        (620, 1020), (1020, 1420), (1420, 1820)
    ]  # fmt: skip


def test_prefill_without_staging_is_all_cpu() -> None:
    assert layer_row(prompted(3, staging=0), 0)["placement"].tolist() == [2, 2, 2]


def test_prefill_on_the_cpu_where_copies_are_slow() -> None:
    log = prompted(3, copy_ns=100_000)
    assert layer_row(log, 0)["placement"].tolist() == [2, 2, 2]
    assert times(log, 0)["cpu_busy"] == 1600 + 1300 + 1000
    assert log.copies.empty


def test_a_trace_without_prefill_says_so() -> None:
    log = simulate(
        ListReplay([[one_row([0, 1])]], experts=4), Scripted(), round_costs(), settings()
    )
    assert log.info.notes["prefill"] == "not in the trace, so its time is 0"


def test_slots_survive_requests_unless_the_start_is_cold() -> None:
    replay = ListReplay([[one_row([0, 1])] * 2, [one_row([0, 1])] * 2], experts=4)
    costs = round_costs(pass_ns=1000)  # so that the prefetch at the end of a pass lands in time
    warm_policy = Scripted(leaves={(0, 0): (Copy(0, 0),)})
    cold_policy = Scripted(leaves={(0, 0): (Copy(0, 0),)})
    warm = simulate(replay, warm_policy, costs, settings(warmup_requests=1))
    cold = simulate(replay, cold_policy, costs, settings(cold_start=True))
    assert [row.tolist() for row in warm.layers["hit"]] == [[0, 0], [1, 0], [1, 0], [1, 0]]
    assert [row.tolist() for row in cold.layers["hit"]] == [[0, 0], [1, 0], [0, 0], [1, 0]]
    assert (warm_policy.resets, cold_policy.resets) == (1, 2)
    assert warm.passes["warmup"].tolist() == [True, True, False, False]
    # Generations go on, so that no two copies of a run share slot and generation.
    assert cold.copies["generation"].tolist() == [1, 2]


def test_a_cold_start_does_not_wait_for_old_copies() -> None:
    replay = ListReplay([[one_row([0, 1])]] * 2, experts=4)
    policy = Scripted(leaves={(0, 0): (Copy(0, 0),)})
    log = simulate(replay, policy, round_costs(), settings(cold_start=True))
    landing = copies(log)[0][3]
    assert log.passes["begin_ns"].iloc[1] < landing < log.layers["join_ns"].iloc[1]
    assert log.layers["leave_landed"].tolist() == [0, 0]


def test_requests_can_be_cut() -> None:
    replay = ListReplay([[one_row([0, 1])]] * 3, experts=4)
    log = simulate(replay, Scripted(), round_costs(), settings(requests=2))
    assert log.passes["request"].tolist() == [0, 1]


def test_progress_counts_committed_tokens() -> None:
    replay = ListReplay([[one_row([0, 1])] * 2] * 2, experts=4)
    seen: list[tuple[int, int]] = []
    simulate(
        replay, Scripted(), round_costs(), settings(), progress=lambda *both: seen.append(both)
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
