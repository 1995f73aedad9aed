"""Reuse, distinct experts, entropy and repeated text against plain definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traces.locality import (
    distinct_experts,
    repeated_ngrams,
    reuse_from_previous,
    router_entropy,
    sliding_windows,
)
from traces.rows import DECODE
from traces.synthetic import SyntheticShape, markov_text, synthetic_manifest
from traces.text_rows import TextRows, text_rows


def text_of(seed: int, reuse: float = 0.4) -> TextRows:
    shape = SyntheticShape(layers=3, experts=10, top_k=3, requests=3, tokens=20, reuse=reuse)
    return text_rows(markov_text(shape, seed), synthetic_manifest(shape, "text"))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000))
def test_reuse_by_definition(seed: int) -> None:
    text = text_of(seed)
    shared, total = 0, 0
    for t in range(1, len(text.request)):
        if text.request[t] == text.request[t - 1]:
            for layer in range(3):
                later, earlier = set(text.experts[t, layer]), set(text.experts[t - 1, layer])
                shared += len(later & earlier)
                total += len(later)
    assert reuse_from_previous(text) == pytest.approx(shared / total)


def test_reuse_does_not_cross_requests() -> None:
    experts = np.zeros((4, 1, 1), np.uint16)
    experts[2:] = 1
    text = TextRows(np.array([0, 0, 1, 1], np.int32), np.zeros(4, np.int32), experts)
    assert reuse_from_previous(text) == 1.0


def test_reuse_of_single_rows_is_not_a_number() -> None:
    experts = np.zeros((2, 1, 1), np.uint16)
    text = TextRows(np.array([0, 1], np.int32), np.zeros(2, np.int32), experts)
    assert math.isnan(reuse_from_previous(text))


def test_reuse_follows_the_generator() -> None:
    assert reuse_from_previous(text_of(0, reuse=0.0)) == pytest.approx(0.3, abs=0.08)
    assert reuse_from_previous(text_of(0, reuse=1.0)) == 1.0


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.integers(0, 5))
def test_distinct_experts_by_definition(seed: int, gamma: int) -> None:
    windows = sliding_windows(text_of(seed), gamma)
    counted = distinct_experts(windows)
    assert counted.shape == (len(windows), 3)
    for index in (0, len(windows) // 2, -1):
        for layer in range(3):
            assert counted[index, layer] == len(set(windows[index, :, layer].ravel().tolist()))


@pytest.mark.parametrize("gamma", [0, 1, 4])
def test_sliding_windows_stay_in_their_request(gamma: int) -> None:
    text = text_of(1)
    windows = sliding_windows(text, gamma)
    assert len(windows) == 3 * (20 - gamma)
    np.testing.assert_array_equal(windows[0], text.experts[: gamma + 1])
    np.testing.assert_array_equal(windows[20 - gamma], text.experts[20 : 21 + gamma])


def test_windows_longer_than_the_text() -> None:
    assert len(sliding_windows(text_of(1), 30)) == 0
    assert len(sliding_windows(text_of(1), 300)) == 0


def test_entropy_of_known_popularities() -> None:
    uniform = np.arange(8, dtype=np.uint16).reshape(-1, 1, 1)
    single = np.zeros((8, 1, 1), np.uint16)
    half = (np.arange(8, dtype=np.uint16) % 2).reshape(-1, 1, 1)
    entropies = router_entropy(np.concatenate([uniform, single, half], axis=1), 8)
    assert entropies == pytest.approx([1.0, 0.0, 1 / 3])


@given(st.lists(st.lists(st.integers(0, 2), max_size=15), max_size=4))
def test_repeated_ngrams_by_definition(texts: list[list[int]]) -> None:
    repeated, total = 0, 0
    for text in texts:
        grams = [tuple(text[i : i + 4]) for i in range(len(text) - 3)]
        repeated += sum(grams[i] in grams[:i] for i in range(len(grams)))
        total += len(grams)
    found = repeated_ngrams([np.array(text, np.int32) for text in texts])
    assert found == pytest.approx(repeated / total) if total else math.isnan(found)


def test_a_looping_text_repeats_and_a_counting_one_does_not() -> None:
    loop = np.tile(np.arange(5, dtype=np.int32), 40)
    assert repeated_ngrams([loop]) > 0.97
    assert repeated_ngrams([np.arange(200, dtype=np.int32)]) == 0.0
    assert repeated_ngrams([np.arange(50, dtype=np.int32)] * 2) == 0.0


def test_text_rows_are_decode_rows_only() -> None:
    shape = SyntheticShape(prompt_tokens=7)
    batch = markov_text(shape, 0)
    text = text_rows(batch, synthetic_manifest(shape, "text"))
    np.testing.assert_array_equal(text.token, batch.input_token[batch.phase == DECODE])
