"""Useful, late, wasted: single cases, and random runs against a plain replay of events."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runlog_samples import (
    DEMAND,
    MODEL,
    PREFETCH,
    STREAMED,
    add_copy,
    add_layer,
    add_pass,
    run_info,
)

from traces.prefetch_outcomes import count_outcomes
from traces.runlog import RunLogBuilder
from traces.runlog_schema import DECODE_PHASE, PREFILL_PHASE


@dataclass(frozen=True)
class Use:
    pass_index: int
    layer: int
    expert: int
    hit: int


@dataclass(frozen=True)
class Copy:
    pass_index: int
    layer: int
    key: int
    slot: int
    generation: int
    kind: int


def outcomes(
    copies: list[Copy], uses: list[Use], prefill: tuple[int, ...] = ()
) -> tuple[int, int, int]:
    builder = RunLogBuilder(run_info())
    for number, copy in enumerate(copies):
        add_copy(
            builder,
            number,
            pass_index=copy.pass_index,
            layer=copy.layer,
            expert=copy.key,
            slot=copy.slot,
            generation=copy.generation,
            kind=copy.kind,
        )
    places = sorted({(use.pass_index, use.layer) for use in uses})
    for pass_index, layer in places:
        own = sorted(
            (u for u in uses if (u.pass_index, u.layer) == (pass_index, layer)),
            key=lambda use: use.expert,
        )
        add_layer(
            builder,
            pass_index,
            layer,
            0,
            experts=[u.expert for u in own],
            counts=[1] * len(own),
            placement=[1] * len(own),
            hit=[u.hit for u in own],
        )
    for pass_index in sorted({use.pass_index for use in uses}):
        phase = PREFILL_PHASE if pass_index in prefill else DECODE_PHASE
        add_pass(builder, pass_index, 0, 100, phase=phase)
    log = builder.build()
    return count_outcomes(log, log.copies)


def prefetch(pass_index: int, layer: int, key: int, slot: int = 0, generation: int = 1) -> Copy:
    return Copy(pass_index, layer, key, slot, generation, PREFETCH)


USEFUL, LATE, WASTED = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def test_used_while_resident_is_useful() -> None:
    assert outcomes([prefetch(0, 0, key=5)], [Use(0, 1, 1, hit=1)]) == USEFUL


def test_needed_while_on_its_way_is_late() -> None:
    assert outcomes([prefetch(0, 0, key=5)], [Use(0, 1, 1, hit=0)]) == LATE


def test_the_first_use_decides() -> None:
    uses = [Use(0, 1, 1, hit=0), Use(1, 1, 1, hit=1)]
    assert outcomes([prefetch(0, 0, key=5)], uses) == LATE


def test_never_used_is_wasted() -> None:
    assert outcomes([prefetch(0, 0, key=5)], []) == WASTED
    assert outcomes([prefetch(0, 0, key=5)], [Use(0, 1, 2, hit=1)]) == WASTED


def test_an_expert_of_another_layer_is_another_expert() -> None:
    assert outcomes([prefetch(0, 0, key=5)], [Use(1, 0, 1, hit=1)]) == WASTED


def test_a_use_before_the_copy_does_not_count() -> None:
    assert outcomes([prefetch(1, 1, key=5)], [Use(0, 1, 1, hit=1), Use(1, 1, 1, hit=0)]) == WASTED


def test_a_copy_of_the_draft_phase_serves_all_layers_of_its_pass() -> None:
    assert outcomes([prefetch(1, -1, key=0)], [Use(1, 0, 0, hit=1)]) == USEFUL
    assert outcomes([prefetch(1, -1, key=4)], [Use(0, 1, 0, hit=1)]) == WASTED


def test_evicted_before_its_use_is_wasted() -> None:
    evicting = Copy(0, 1, 7, slot=0, generation=2, kind=DEMAND)
    assert outcomes([prefetch(0, 0, key=5), evicting], [Use(1, 1, 1, hit=0)]) == WASTED


def test_evicted_after_its_use_is_useful() -> None:
    evicting = Copy(1, 0, 7, slot=0, generation=2, kind=DEMAND)
    assert outcomes([prefetch(0, 0, key=5), evicting], [Use(0, 1, 1, hit=1)]) == USEFUL


def test_evicted_by_the_layer_that_used_it_is_useful() -> None:
    evicting = Copy(0, 1, 7, slot=0, generation=2, kind=DEMAND)
    assert outcomes([prefetch(0, 0, key=5), evicting], [Use(0, 1, 1, hit=1)]) == USEFUL


def test_another_slot_does_not_evict() -> None:
    other = Copy(0, 1, 7, slot=1, generation=2, kind=DEMAND)
    assert outcomes([prefetch(0, 0, key=5), other], [Use(1, 1, 1, hit=1)]) == USEFUL


def test_a_prefill_is_no_use() -> None:
    uses = [Use(1, 1, 1, hit=0), Use(2, 1, 1, hit=1)]
    assert outcomes([prefetch(0, 0, key=5)], uses, prefill=(1,)) == USEFUL
    assert outcomes([prefetch(0, 0, key=5)], uses, prefill=(1, 2)) == WASTED


def test_streams_do_not_evict() -> None:
    streamed = Copy(0, 1, 7, slot=0, generation=2, kind=STREAMED)
    assert outcomes([prefetch(0, 0, key=5), streamed], [Use(1, 1, 1, hit=1)]) == USEFUL


def test_the_same_expert_twice_is_judged_twice() -> None:
    copies = [
        prefetch(0, 0, key=5),
        Copy(0, 1, 7, slot=0, generation=2, kind=DEMAND),
        prefetch(1, 0, key=5, slot=1, generation=3),
    ]
    assert outcomes(copies, [Use(1, 1, 1, hit=1)]) == (1, 0, 1)


def test_demand_copies_are_not_judged() -> None:
    assert outcomes([Copy(0, 0, 5, 0, 1, DEMAND)], [Use(0, 1, 1, hit=1)]) == (0, 0, 0)


COPIES = st.builds(
    Copy,
    pass_index=st.integers(0, 3),
    layer=st.integers(-1, 1),
    key=st.integers(0, 7),
    slot=st.integers(0, 2),
    generation=st.just(0),
    kind=st.sampled_from([DEMAND, STREAMED, PREFETCH]),
)
USES = st.builds(
    Use,
    pass_index=st.integers(0, 3),
    layer=st.integers(0, 1),
    expert=st.integers(0, 3),
    hit=st.integers(0, 1),
)


@settings(deadline=None, max_examples=100)
@given(
    copies=st.lists(COPIES, max_size=12),
    uses=st.lists(USES, max_size=16, unique_by=lambda u: (u.pass_index, u.layer, u.expert)),
)
def test_random_runs_against_the_definition(copies: list[Copy], uses: list[Use]) -> None:
    copies = sorted(copies, key=lambda c: (c.pass_index, c.layer))
    copies = [
        Copy(c.pass_index, c.layer, c.key, c.slot, number, c.kind)
        for number, c in enumerate(copies)
    ]
    expected = [0, 0, 0]
    for copy in copies:
        if copy.kind != PREFETCH:
            continue
        place = (copy.pass_index, copy.layer)
        ends = [
            (other.pass_index, other.layer)
            for other in copies
            if other.kind != STREAMED
            and other.slot == copy.slot
            and other.generation > copy.generation
        ]
        end = min(ends, default=(99, 0))
        inside = sorted(
            ((u.pass_index, u.layer), u.hit)
            for u in uses
            if u.layer * MODEL.experts + u.expert == copy.key
            and place < (u.pass_index, u.layer) <= end
        )
        expected[2 if not inside else (0 if inside[0][1] else 1)] += 1
    assert outcomes(copies, uses) == tuple(expected)


@pytest.mark.parametrize("layers", [1, 2])
def test_without_layers_everything_is_wasted(layers: int) -> None:
    copies = [prefetch(0, -1, key=layer * 4, slot=layer) for layer in range(layers)]
    assert outcomes(copies, []) == (0, 0, layers)
