"""Belady by access and by verify window: exhaustive search, orders that are theorems, and runs."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from traces.caches import belady_hits, lru_hits
from traces.set_caches import belady_set_hits, lru_set_hits
from traces.window_caches import window_hit_rates

Events = list[list[int]]


def flat(events: Events) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    begin = np.concatenate([[0], np.cumsum([len(one) for one in events])]).astype(np.int64)
    return begin, np.array([expert for one in events for expert in one], np.int64)


def best_possible(events: Events, capacity: int) -> int:
    """Exhaustive search over every set of residents that demand copies can leave after each event:
    any subset of what was there and what was needed."""
    best = {frozenset[int](): 0}
    for event in events:
        following: dict[frozenset[int], int] = {}
        for cache, hits in best.items():
            gained = hits + len(cache & set(event))
            there = sorted(cache | set(event))
            for size in range(min(capacity, len(there)) + 1):
                for kept in itertools.combinations(there, size):
                    key = frozenset(kept)
                    following[key] = max(following.get(key, -1), gained)
        best = following
    return max(best.values())


def event_lists(longest: int, experts: int) -> st.SearchStrategy[Events]:
    event = st.sets(st.integers(0, experts - 1), min_size=1, max_size=experts).map(sorted)
    return st.lists(event, min_size=1, max_size=longest)


@settings(deadline=None, max_examples=80)
@given(events=event_lists(8, 5), capacity=st.integers(0, 4))
def test_belady_of_sets_is_the_best_possible(events: Events, capacity: int) -> None:
    assert belady_set_hits(*flat(events), 5, capacity) == best_possible(events, capacity)


@settings(deadline=None, max_examples=80)
@given(accesses=st.lists(st.integers(0, 5), min_size=1, max_size=14), capacity=st.integers(0, 4))
def test_belady_of_single_accesses_is_the_best_possible(accesses: list[int], capacity: int) -> None:
    events = [[one] for one in accesses]
    assert belady_set_hits(*flat(events), 6, capacity) == best_possible(events, capacity)


@settings(deadline=None, max_examples=80)
@given(events=event_lists(40, 8), capacity=st.integers(1, 8))
def test_orders_that_are_theorems(events: Events, capacity: int) -> None:
    data = flat(events)
    belady = belady_set_hits(*data, 8, capacity)
    assert lru_set_hits(*data, 8, capacity) <= belady
    assert belady_set_hits(*data, 8, capacity - 1) <= belady
    assert belady <= belady_set_hits(*data, 8, 8) == len(data[1]) - len(set(data[1].tolist()))


def test_tokens_are_events_of_equal_size() -> None:
    tokens = np.random.default_rng(0).random((50, 8)).argsort(axis=1)[:, :3].astype(np.int64)
    data = flat(tokens.tolist())
    assert belady_hits(tokens, 8, 4) == belady_set_hits(*data, 8, 4)
    assert lru_hits(tokens, 8, 4) == lru_set_hits(*data, 8, 4)


def test_a_window_cannot_hit_what_it_loads_itself() -> None:
    """Two rows that choose the same expert: by accesses the second one hits, by windows none."""
    windows = [np.array([[[0]], [[0]]], np.uint16), np.array([[[1]], [[1]]], np.uint16)]
    found = window_hit_rates(windows, 4, 0.25)
    assert (found.lru_access, found.belady_access) == (0.5, 0.5)
    assert (found.lru_window, found.belady_window) == (0.0, 0.0)


def test_rates_are_over_all_layers_and_empty_without_windows() -> None:
    window = np.array([[[0], [0]]], np.uint16)
    other = np.array([[[0], [1]]], np.uint16)
    assert window_hit_rates([window, other], 4, 0.25).lru_window == pytest.approx(0.25)
    assert np.isnan(window_hit_rates([], 4, 0.25).belady_window)
