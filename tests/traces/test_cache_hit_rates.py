"""LRU, LFU and Belady against plain Python, exhaustive search and libCacheSim; and their order."""

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from traces.caches import belady_hits, capacity_of, hit_rates, lfu_hits, lru_hits
from traces.oracle_general import REQUEST, write_oracle_general


def plain_lru(tokens: list[list[int]], capacity: int) -> int:
    """A list from oldest to newest use."""
    cache: list[int] = []
    hits = 0
    for token in tokens:
        residents = [expert for expert in token if expert in cache]
        hits += len(residents)
        for expert in residents:
            cache.remove(expert)
            cache.append(expert)
        for expert in token:
            if expert in cache or capacity == 0:
                continue
            if len(cache) == capacity:
                cache.pop(0)
            cache.append(expert)
    return hits


def plain_lfu(tokens: list[list[int]], capacity: int) -> int:
    """A list of (expert, touches); the order within a number of touches is that of reaching it."""
    cache: list[tuple[int, int]] = []
    hits = 0
    for token in tokens:
        held = dict(cache)
        for expert in token:
            if expert in held:
                hits += 1
                cache.remove((expert, held[expert]))
                cache.append((expert, held[expert] + 1))
        for expert in token:
            if expert in dict(cache) or capacity == 0:
                continue
            if len(cache) == capacity:
                cache.remove(min(cache, key=lambda item: item[1]))
            cache.append((expert, 1))
    return hits


def best_that_loads_all(tokens: list[list[int]], capacity: int) -> int:
    """As best_possible, of caches that hold each expert just used."""
    best = {frozenset[int](): 0}
    for (expert,) in tokens:
        following: dict[frozenset[int], int] = {}
        for cache, hits in best.items():
            if expert in cache:
                choices = [cache]
            elif len(cache) < capacity:
                choices = [cache | {expert}]
            else:
                choices = [cache - {victim} | {expert} for victim in cache]
            for kept in choices:
                following[kept] = max(following.get(kept, -1), hits + (expert in cache))
        best = following
    return max(best.values())


def best_possible(tokens: list[list[int]], capacity: int) -> int:
    """Exhaustive search over every set of residents that can follow each token."""
    best = {frozenset[int](): 0}
    for token in tokens:
        following: dict[frozenset[int], int] = {}
        for cache, hits in best.items():
            gained = hits + sum(expert in cache for expert in token)
            candidates = cache | set(token)
            size = min(capacity, len(candidates))
            for kept in itertools.combinations(sorted(candidates), size):
                key = frozenset(kept)
                following[key] = max(following.get(key, -1), gained)
        best = following
    return max(best.values())


@st.composite
def token_lists(draw: st.DrawFn, longest: int, experts: int) -> list[list[int]]:
    k = draw(st.integers(1, min(3, experts)))
    token = st.permutations(range(experts)).map(lambda order: list(order[:k]))
    return draw(st.lists(token, min_size=1, max_size=longest))


def array(tokens: list[list[int]]) -> NDArray[np.int64]:
    return np.array(tokens, np.int64)


@settings(deadline=None, max_examples=150)
@given(tokens=token_lists(60, 8), capacity=st.integers(0, 8))
def test_lru_equals_plain_python(tokens: list[list[int]], capacity: int) -> None:
    assert lru_hits(array(tokens), 8, capacity) == plain_lru(tokens, capacity)


@settings(deadline=None, max_examples=150)
@given(tokens=token_lists(60, 8), capacity=st.integers(0, 8))
def test_lfu_equals_plain_python(tokens: list[list[int]], capacity: int) -> None:
    assert lfu_hits(array(tokens), 8, capacity) == plain_lfu(tokens, capacity)


@settings(deadline=None, max_examples=60)
@given(
    tokens=st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=1), min_size=1, max_size=12),
    capacity=st.integers(1, 4),
)
def test_belady_that_loads_all_is_the_best_of_these(tokens: list[list[int]], capacity: int) -> None:
    found = belady_hits(array(tokens), 5, capacity, True)
    assert found == best_that_loads_all(tokens, capacity)
    assert found <= belady_hits(array(tokens), 5, capacity)


@settings(deadline=None, max_examples=60)
@given(tokens=token_lists(10, 5), capacity=st.integers(0, 4))
def test_belady_is_the_best_possible(tokens: list[list[int]], capacity: int) -> None:
    assert belady_hits(array(tokens), 5, capacity) == best_possible(tokens, capacity)


@settings(deadline=None, max_examples=60)
@given(tokens=token_lists(60, 8), capacity=st.integers(1, 8))
def test_lru_never_beats_belady_and_more_slots_never_hurt(
    tokens: list[list[int]], capacity: int
) -> None:
    data = array(tokens)
    assert lru_hits(data, 8, capacity) <= belady_hits(data, 8, capacity)
    assert belady_hits(data, 8, capacity - 1) <= belady_hits(data, 8, capacity)


def test_hits_are_counted_before_loading() -> None:
    # Expert 0 is missed, loaded, hit; expert 1 likewise. k = 2, room for both.
    assert lru_hits(array([[0, 1], [0, 1], [2, 1]]), 4, 2) == 3
    assert lru_hits(array([[0, 1]]), 4, 4) == 0


def test_residents_of_a_token_are_not_its_victims() -> None:
    # At the third token 1 is the older one, but it is needed now: 2 must go.
    tokens = array([[1, 2], [2, 3], [3, 1], [3, 1]])
    assert lru_hits(tokens, 4, 2) == 0 + 1 + 1 + 2


def test_a_full_cache_misses_only_the_first_time() -> None:
    tokens = np.tile(np.array([[0, 1], [2, 3]]), (10, 1))
    assert lru_hits(tokens, 4, 4) == tokens.size - 4


def test_a_cyclic_sweep_defeats_lru_but_not_belady() -> None:
    tokens = np.tile(np.arange(4)[:, None], (25, 1))
    assert lru_hits(tokens, 4, 3) == 0
    assert belady_hits(tokens, 4, 3) > 60


@pytest.mark.parametrize(
    ("ratio", "experts", "capacity"),
    [(0.17, 32, 5), (0.17, 64, 10), (0.25, 32, 8), (0.5, 64, 32), (0.29, 100, 29), (1.0, 7, 7)],
)
def test_capacity(ratio: float, experts: int, capacity: int) -> None:
    assert capacity_of(ratio, experts) == capacity


def test_hit_rates_are_means_over_layers() -> None:
    experts = np.zeros((100, 2, 1), np.uint16)
    experts[:, 1, 0] = np.arange(100) % 4
    lru, belady = hit_rates(experts, 4, 0.25)
    assert lru == pytest.approx((99 / 100 + 0) / 2)
    assert belady >= lru


def test_layers_do_not_share_experts() -> None:
    """The same numbers in two layers are different experts: one slot each holds them both."""
    experts = np.tile(np.array([[[0], [1]]], np.uint16), (50, 1, 1))
    assert hit_rates(experts, 4, 0.25)[0] == pytest.approx(49 / 50)


def test_no_rows_and_no_slots() -> None:
    assert hit_rates(np.zeros((0, 2, 1), np.uint16), 4, 0.5) == (0.0, 0.0)
    assert hit_rates(np.zeros((9, 2, 1), np.uint16), 4, 0.1) == (0.0, 0.0)


@pytest.mark.skipif(
    importlib.util.find_spec("libcachesim") is None, reason="libcachesim is not installed"
)
@pytest.mark.parametrize("capacity", [1, 5, 21, 64])
@pytest.mark.parametrize("skew", [0.0, 1.2])
def test_single_requests_give_the_hits_of_libcachesim(
    tmp_path: Path, capacity: int, skew: float
) -> None:
    import libcachesim

    random = np.random.default_rng(capacity)
    weight = 1.0 / np.arange(1, 129) ** skew
    requests = random.choice(128, 20_000, p=weight / weight.sum())
    path = write_oracle_general(tmp_path / "requests.oracleGeneral.bin", requests, 128)
    tokens = np.ascontiguousarray(requests[:, None])
    ours = {
        "LRU": lru_hits(tokens, 128, capacity),
        "LFU": lfu_hits(tokens, 128, capacity),
        "Belady": belady_hits(tokens, 128, capacity, True),
    }
    for name, hits in ours.items():
        reader = libcachesim.TraceReader(
            str(path), libcachesim.TraceType.ORACLE_GENERAL_TRACE,
            libcachesim.ReaderInitParam(ignore_obj_size=True),
        )  # fmt: skip
        misses, _ = getattr(libcachesim, name)(cache_size=capacity).process_trace(reader)
        assert hits == round((1 - misses) * len(requests)), name


def test_the_exported_file_holds_each_request_and_its_next_use(tmp_path: Path) -> None:
    path = write_oracle_general(tmp_path / "requests.bin", np.array([3, 1, 3, 3]), 4)
    records = np.fromfile(path, REQUEST)
    assert path.stat().st_size == 4 * 24
    assert records["object"].tolist() == [3, 1, 3, 3]
    never = np.iinfo(np.int64).max
    assert records["next"].tolist() == [2, never, 3, never]
