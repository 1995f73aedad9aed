"""Lanes of a pass, read back from a hand-made run."""

import itertools

import pytest

from policies.api import CPU, FETCH, GPU, Copy, LayerPlan
from policies.errors import UserError
from simulator.reference import simulate
from simulator.timeline import Interval, gpu_blocks, pass_lanes
from tests.simulator.scenes import ListReplay, Scripted, round_costs, settings

ROWS = [[[0, 1], [2, 3]], [[0, 1], [2, 3]]]


def test_every_lane_of_a_pass() -> None:
    policy = Scripted(
        plans={(0, 0): LayerPlan({0: CPU, 1: FETCH}, demand=(Copy(1, 0),))},
        leaves={(0, 0): (Copy(6, 1),)},
        drafts={(0, 0): (Copy(7, 2),)},
    )
    log = simulate(ListReplay([[ROWS]], experts=4), policy, round_costs(), settings(gamma=1))
    # Layer 0: t1 = 700 + 520 + 50, plan at 1320; copy 1320..1720, during which the CPU (from 1360)
    # does
    # 180 of its 1300 ns.
    first = [
        Interval("gpu", 0, 700, "draft step 0", "draft"),
        Interval("gpu", 700, 1270, "layer 0", "dense"),
        Interval("gpu", 1720, 1950, "layer 0", "experts"),
        Interval("gpu", 2900, 3470, "layer 1", "dense"),
    ]
    lanes = pass_lanes(log, 0)
    assert lanes[:4] == first
    assert lanes[4].kind == "experts" and lanes[4].lane == "gpu"
    assert [one.kind for one in lanes if one.lane == "gpu"][-1] == "head"
    assert next(one for one in lanes if one.lane == "cpu") == Interval(
        "cpu", 1360, 2840, "layer 0", "experts"
    )
    assert [one for one in lanes if one.lane == "link"] == [
        Interval("link", 705, 1105, "layer 1 expert 3, issued while drafting", "prefetch"),
        Interval("link", 1320, 1720, "layer 0 expert 1, issued at layer 0", "demand"),
        Interval("link", 2907, 3307, "layer 1 expert 2, issued at layer 0", "prefetch"),
    ]
    assert [one for one in lanes if one.lane == "host"][:3] == [
        Interval("host", 700, 705, "draft step 0", "decision"),
        Interval("host", 1300, 1320, "layer 0", "decision"),
        Interval("host", 2900, 2907, "end of layer 0", "decision"),
    ]


def test_intervals_of_a_lane_do_not_overlap() -> None:
    log = simulate(
        ListReplay([[ROWS] * 3], experts=4), Scripted(), round_costs(), settings(gamma=1)
    )
    for index in range(3):
        lanes = pass_lanes(log, index)
        for one, following in itertools.pairwise(lanes):
            assert one.begin_ns < one.end_ns
            assert one.lane != following.lane or one.end_ns <= following.begin_ns


def test_waiting_for_a_copy_is_not_busy() -> None:
    """A resident and a fetched expert: between them the GPU waits for the landing."""
    rows = [[[0, 1]]]
    fetch = LayerPlan({0: FETCH, 1: CPU}, demand=(Copy(0, 0),))
    both = LayerPlan({0: GPU, 1: FETCH}, demand=(Copy(1, 1),))
    policy = Scripted(plans={(0, 0): fetch, (1, 0): both})
    log = simulate(ListReplay([[rows] * 2], experts=4), policy, round_costs(), settings())
    row = log.layers[log.layers["pass_index"] == 1].iloc[0]
    (landing,) = log.copies.loc[log.copies["expert"] == 1, "landing_ns"]
    blocks = gpu_blocks(row, log)
    assert blocks == [
        (row["gpu_begin_ns"], row["gpu_begin_ns"] + 200), (landing, row["gpu_end_ns"]),
    ]  # fmt: skip
    assert sum(end - begin for begin, end in blocks) == row["gpu_busy_ns"]
    experts = [one for one in pass_lanes(log, 1) if (one.lane, one.kind) == ("gpu", "experts")]
    assert [(one.begin_ns, one.end_ns) for one in experts] == blocks


def test_a_pass_that_is_not_there() -> None:
    log = simulate(ListReplay([[ROWS]], experts=4), Scripted(), round_costs(), settings())
    with pytest.raises(UserError, match=r"no pass 5 .* up to 0"):
        pass_lanes(log, 5)
