"""Plans of the balancers of literature systems, on one layer with known residents."""

import numpy as np
import pytest

from policies.api import CPU, FETCH, GPU, STREAM, Routing, Shape
from policies.balancers.split import split_misses
from policies.compile import python_kernel
from policies.composed import ComposedPolicy
from policies.conformance import CountedLink, plain_costs
from policies.ledger import READY, begin_fill
from policies.parts import (
    Assignment,
    Cheaper,
    Greedy,
    GreedyGain,
    Priced,
    Recency,
    Reuse,
    Split,
    Still,
    StreamMisses,
)
from policies.session import Session

split_misses = python_kernel(split_misses)
begin_fill = python_kernel(begin_fill)

EXPERTS = 12


def decide(
    balancer,
    counts,
    resident=(),
    filling=(),
    staging=2,
    slots=4,
    early=False,
    costs=None,
    estimator=None,
):
    """Plan of one layer in which expert e has counts[e] rows; {expert: placement}, demand."""
    shape = Shape(1, EXPERTS, 1, slots, staging, 8, early)
    policy = ComposedPolicy("x", estimator or Recency(), balancer, Still(), quota="pool")
    made = Session(policy, shape, costs or plain_costs(), CountedLink(0))
    for slot, expert in enumerate([*resident, *filling]):
        begin_fill(made.ledger, expert, slot)
        if expert in resident:
            made.ledger.slot_state[slot] = READY
    made.start_pass(0)
    rows = np.repeat(np.arange(EXPERTS), [*counts, *[0] * (EXPERTS - len(counts))])
    decision = made.enter_layer(Routing(0, rows.astype(np.int32)[:, None]))
    placed = dict(zip(decision.active.tolist(), decision.placement.tolist(), strict=True))
    return placed, list(
        zip(decision.demand_expert.tolist(), decision.demand_slot.tolist(), strict=True)
    )


def test_stream_misses_keeps_nothing():
    placed, demand = decide(StreamMisses(), [1, 0, 2, 1], resident=[0])
    assert placed == {0: GPU, 2: STREAM, 3: STREAM}
    assert demand == [(2, -2), (3, -2)]


def test_without_staging_a_stream_becomes_a_fetch_and_without_slots_the_cpu_computes():
    placed, _ = decide(StreamMisses(), [1, 1, 1, 1], resident=[0], staging=0, slots=2)
    assert placed == {0: GPU, 1: FETCH, 2: CPU, 3: CPU}


def test_fiddlers_rule_looks_at_one_expert_at_a_time():
    """CPU 145 us a row, copy 388 us, GPU 20 us a row: from four rows on the copy is faster."""
    placed, _ = decide(Cheaper(), [1, 2, 3, 4, 5], resident=[0], filling=[4])
    assert placed == {0: GPU, 1: CPU, 2: CPU, 3: STREAM, 4: CPU}


def test_the_split_follows_the_bandwidths():
    assert split_misses(10, 145, 382) == 3
    assert split_misses(0, 145, 382) == 0
    assert split_misses(4, 900, 382) == 4  # a host slower than the link fetches everything


def test_freetoken_fetches_the_misses_of_most_rows():
    """Nine misses: q* = 9 * 145 // 388 = 3."""
    placed, demand = decide(Split(), [1, 5, 1, 1, 4, 1, 1, 3, 1])
    assert {expert for expert, placement in placed.items() if placement == FETCH} == {1, 4, 7}
    assert [expert for expert, _ in demand] == [1, 4, 7]
    assert sum(placement == CPU for placement in placed.values()) == 6


@pytest.mark.parametrize("part", [Assignment, Greedy, GreedyGain])
def test_assignment_copies_the_experts_of_most_rows(part):
    """Ten misses of which two have many rows: they overlap with the CPU's work on the others."""
    placed, demand = decide(part(), [1, 9, 1, 1, 9, 1, 1, 1, 1, 1], resident=[0])
    assert placed[0] == GPU
    assert placed[1] == placed[4] == FETCH
    assert [expert for expert, _ in demand][:2] == [1, 4]
    assert placed[9] == CPU


def test_not_kept_means_streamed():
    placed, _ = decide(Assignment(keep=False), [1, 9, 1, 1, 9, 1, 1, 1, 1, 1], resident=[0])
    assert placed[1] == placed[4] == STREAM


def test_early_residents_stay_on_the_gpu():
    """GPU work of the residents far above one CPU expert: late launch moves some, early cannot."""
    costs = plain_costs()._replace(gpu_ns=np.arange(17, dtype=np.int64) * 100_000)
    everything = {"resident": [0, 1, 2, 3], "costs": costs}
    placed, _ = decide(Assignment(), [2, 2, 2, 2], **everything)
    assert CPU in placed.values()
    placed, _ = decide(Assignment(), [2, 2, 2, 2], early=True, **everything)
    assert set(placed.values()) == {GPU}


def test_a_copy_under_way_is_waited_for_only_if_that_is_faster():
    placed, demand = decide(Assignment(), [9], filling=[0])
    assert placed == {0: FETCH} and demand == [(0, -1)]
    placed, _ = decide(Assignment(), [1], filling=[0, 1, 2])
    assert placed == {0: CPU}


def test_one_cheap_miss_is_left_to_the_cpu():
    assert decide(Assignment(), [1])[0] == {0: CPU}
    assert decide(Greedy(), [1])[0] == {0: CPU}
    assert decide(GreedyGain(), [1])[0] == {0: CPU}


def test_contention_counts_cpu_time_as_longer():
    slow = plain_costs()._replace(contention=256)  # CPU work at a quarter of its rate
    assert decide(Assignment(), [2], costs=slow)[0] == {0: CPU}
    assert decide(Assignment(contended=True), [2], costs=slow)[0] == {0: FETCH}


def fetched(placed):
    return sum(placement == FETCH for placement in placed.values())


def test_copies_have_their_price():
    """CPU 145 us a row, copy 388 us: one miss is not worth waiting for, unless what it saves later
    counts for more; of nine, some are copied while the CPU computes."""
    reuse = {"estimator": Reuse(token_weight=0.0)}
    assert decide(Priced(worth=0.0), [1], **reuse)[0] == {0: CPU}
    assert decide(Priced(worth=5.0), [1], **reuse)[0] == {0: FETCH}
    some = decide(Priced(worth=0.0), [1] * 9, slots=12)[0]
    more = decide(Priced(worth=0.03), [1] * 9, slots=12, **reuse)[0]  # each value is about 10
    everything = decide(Priced(worth=1e6), [1] * 9, slots=12, **reuse)[0]
    assert 0 < fetched(some) <= fetched(more) < fetched(everything) == 9


def test_only_as_many_are_copied_for_their_later_uses_as_victims_are_worth_less():
    """Two slots: the third copy would be streamed, and saves nothing later."""
    placed, demand = decide(Priced(worth=3.0), [1] * 5, slots=2, estimator=Reuse(token_weight=0.0))
    assert fetched(placed) == 2 and STREAM not in placed.values()
    assert sorted(slot for _, slot in demand) == [0, 1]


def test_residents_leave_a_gpu_that_would_be_the_later_lane():
    slow = plain_costs()
    slow = slow._replace(gpu_ns=slow.gpu_ns * 5)
    placed, _ = decide(Priced(), [1] * 6, resident=range(6), slots=6, costs=slow)
    assert sorted(set(placed.values())) == sorted({CPU, GPU})
    bound, _ = decide(Priced(), [1] * 6, resident=range(6), slots=6, costs=slow, early=True)
    assert set(bound.values()) == {GPU}


def test_a_copy_under_way_is_waited_for_or_left_to_the_cpu():
    waiting, demand = decide(Priced(), [1], filling=[0])
    assert waiting == {0: CPU} and demand == []  # half a copy, 194 us, is more than 145 us
    waiting, demand = decide(Priced(), [4], filling=[0])
    assert waiting == {0: FETCH} and demand == [(0, -1)]


def test_without_staging_and_slots_the_cpu_computes():
    placed, _ = decide(
        Priced(worth=1e6), [1, 1, 1], resident=[0], staging=0, slots=1,
        estimator=Reuse(token_weight=0.0),
    )  # fmt: skip
    assert placed == {0: GPU, 1: CPU, 2: CPU}
