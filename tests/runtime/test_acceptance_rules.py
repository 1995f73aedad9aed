"""Speculative sampling by exact enumeration: nothing here is drawn at random."""

import itertools

import numpy as np
import pytest

from runtime.acceptance import (
    acceptance_probability,
    accepted_prefix,
    distribution,
    draw,
    reject,
    residual,
)

P = np.array([0.40, 0.35, 0.25, 0.0, 0.0])
RAW = np.array([0.30, 0.25, 0.20, 0.15, 0.10])
TOP_TWO = np.array([0.30, 0.25, 0.0, 0.0, 0.0]) / 0.55


def output_distribution(p: np.ndarray, drawn_from: np.ndarray, judged_by: np.ndarray) -> np.ndarray:
    """The committed token, for drafts from one q that are judged with another."""
    output, rejected = np.zeros_like(p), 0.0
    for token in np.flatnonzero(drawn_from):
        accepted = acceptance_probability(p, judged_by, int(token))
        output[token] += drawn_from[token] * accepted
        rejected += drawn_from[token] * (1 - accepted)
    return output + rejected * residual(p, judged_by)


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.abs(p - q).sum() / 2)


@pytest.mark.parametrize("q", [TOP_TWO, RAW, np.full(5, 0.2), P, np.array([0, 0, 0, 0.5, 0.5])])
def test_the_target_distribution_is_kept(q: np.ndarray) -> None:
    assert total_variation(output_distribution(P, q, q), P) < 1e-15


def test_judging_by_another_q_than_drawn_from_is_seen() -> None:
    """The published mistake: drafts from the processed q, accepted with the raw one."""
    output = output_distribution(P, TOP_TWO, RAW)
    assert total_variation(output, P) == pytest.approx(0.25, abs=0.01)
    assert output == pytest.approx(TOP_TWO, abs=0.01)


def test_best_token_as_draft_with_softmax_q_is_seen() -> None:
    best = np.eye(5)[0]
    assert total_variation(output_distribution(P, best, RAW), P) == pytest.approx(0.60, abs=0.01)


def test_two_positions_by_enumerating_uniform_numbers() -> None:
    """Probabilities are twentieths, so a grid of midpoints integrates `reject` exactly."""
    p = np.array([[0.50, 0.30, 0.20], [0.25, 0.25, 0.50], [0.40, 0.40, 0.20]])
    q = np.array([[0.20, 0.60, 0.20], [0.50, 0.25, 0.25]])
    grid = (np.arange(20) + 0.5) / 20
    joint: dict[tuple[int, ...], float] = {}
    for first, second in itertools.product(range(3), repeat=2):
        weight = q[0, first] * q[1, second] / 20**3
        for uniforms in itertools.product(grid, repeat=3):
            accepted, token = reject(p, q, [first, second], np.array(uniforms))
            text = (*(first, second)[:accepted], token)
            joint[text] = joint.get(text, 0.0) + weight
    first_token = np.zeros(3)
    for text, weight in joint.items():
        first_token[text[0]] += weight
    assert first_token == pytest.approx(p[0])
    # Given that the first draft was accepted, the next token must follow the second row.
    given = np.zeros(3)
    for text, weight in joint.items():
        if len(text) > 1:
            given[text[1]] += weight
    assert given / given.sum() == pytest.approx(p[1])
    # And the bonus token after two accepted drafts the third row.
    bonus = np.zeros(3)
    for text, weight in joint.items():
        if len(text) > 2:
            bonus[text[2]] += weight
    assert bonus / bonus.sum() == pytest.approx(p[2])


def test_inputs_are_left_as_they_are() -> None:
    p, q = np.stack([P, P]), TOP_TWO[None].copy()
    before = p.copy(), q.copy()
    reject(p, q, [1], np.array([0.99, 0.5]))
    assert np.array_equal(p, before[0])
    assert np.array_equal(q, before[1])


def test_equality_rule() -> None:
    assert accepted_prefix([], [7]) == 0
    assert accepted_prefix([3, 4], [3, 4, 9]) == 2
    assert accepted_prefix([3, 5], [3, 4, 9]) == 1
    assert accepted_prefix([2, 4], [3, 4, 9]) == 0, "a match after a mismatch does not count"


def test_residual_of_equal_distributions_is_the_distribution() -> None:
    assert np.array_equal(residual(P, P), P)
    assert residual(P, TOP_TWO) == pytest.approx([0, 0, 1, 0, 0])


def test_draw_takes_only_possible_tokens() -> None:
    p = np.array([0.0, 0.5, 0.0, 0.5, 0.0])
    assert [draw(p, u) for u in (1e-17, 0.49, 0.51, 1 - 1e-17)] == [1, 1, 3, 3]
    counts = np.bincount([draw(P, (n + 0.5) / 100) for n in range(100)], minlength=5)
    assert np.array_equal(counts, [40, 35, 25, 0, 0])


def test_distribution_is_a_stable_softmax() -> None:
    logits = np.array([[1000.0, 1000.0 + np.log(3)], [-5.0, -5.0]], np.float32)
    assert distribution(logits, 1.0) == pytest.approx(
        np.array([[0.25, 0.75], [0.5, 0.5]]), abs=1e-4
    )
    assert distribution(logits, 0.5)[0] == pytest.approx([0.1, 0.9], abs=1e-4)
