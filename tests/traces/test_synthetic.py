"""Synthetic rows: seeded, without duplicate experts, with the statistics asked for."""

import dataclasses

import numpy as np
import pytest
from trace_samples import SMALL, assert_equal_rows

from traces.acceptance import leading_matches
from traces.rows import DECODE
from traces.synthetic import SyntheticShape, markov_text, random_dense, shuffle


def test_the_same_seed_gives_the_same_rows() -> None:
    assert_equal_rows(random_dense(SMALL, 3, 7), random_dense(SMALL, 3, 7))
    assert_equal_rows(markov_text(SMALL, 7), markov_text(SMALL, 7))
    assert not np.array_equal(markov_text(SMALL, 7).experts, markov_text(SMALL, 8).experts)


@pytest.mark.parametrize("experts", [2, 5, 64])
def test_experts_of_a_row_and_layer_differ(experts: int) -> None:
    shape = SyntheticShape(experts=experts, top_k=2)
    ordered = np.sort(random_dense(shape, 2, 0).experts, axis=2)
    assert (ordered[:, :, 1:] != ordered[:, :, :-1]).all()
    assert ordered.max() < experts


@pytest.mark.parametrize("acceptance", [0.0, 0.5, 1.0])
def test_acceptance(acceptance: float) -> None:
    shape = dataclasses.replace(SMALL, tokens=300, acceptance=acceptance)
    batch = random_dense(shape, 4, 0)
    accepted = leading_matches(batch.match[batch.phase == DECODE].reshape(-1, 5))
    assert (accepted >= 1).mean() == pytest.approx(acceptance, abs=0.04)
    assert (accepted == 4).mean() == pytest.approx(acceptance**4, abs=0.04)


def test_sizes() -> None:
    batch = random_dense(SMALL, 3, 0)
    assert len(batch) == SMALL.requests * (SMALL.prompt_tokens + SMALL.tokens * 4)
    assert batch.router_weights is None and batch.next_layer is None
    assert len(markov_text(SMALL, 0)) == SMALL.requests * (SMALL.prompt_tokens + SMALL.tokens)


def test_weights_descend() -> None:
    batch = random_dense(dataclasses.replace(SMALL, weights=True, top_k=3), 1, 0)
    assert batch.router_weights is not None
    assert (np.diff(batch.router_weights.astype(np.float32), axis=2) <= 0).all()


def test_shuffle_keeps_the_rows() -> None:
    experts = markov_text(SMALL, 0).experts
    mixed = shuffle(experts, 3)
    assert not np.array_equal(mixed, experts)
    np.testing.assert_array_equal(shuffle(experts, 3), mixed)
    order = np.lexsort(experts.reshape(len(experts), -1).T)
    mixed_order = np.lexsort(mixed.reshape(len(mixed), -1).T)
    np.testing.assert_array_equal(experts[order], mixed[mixed_order])
