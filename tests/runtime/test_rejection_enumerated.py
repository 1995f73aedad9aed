"""Rejection sampling of whole windows, enumerated: every outcome with its exact probability.

`reject` is piecewise constant in its uniform numbers, with jumps at the acceptance probabilities
and at the cumulative sums of what is drawn from. So its value at the middle of each piece, times
the length of the piece, summed over pieces and drafts, is the exact distribution of the committed
tokens. Vocabularies are tiny, and nothing is drawn at random.
"""

import itertools
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from runtime.acceptance import acceptance_probability, distribution, reject, residual
from runtime.truncation import Truncation

Row = tuple[int, ...]  # probabilities in twelfths


def exact(rows: list[Row]) -> np.ndarray:
    return np.array(rows, dtype=float) / 12


def pieces(jumps: set[float]) -> list[tuple[float, Fraction]]:
    """(middle, exact length) of the intervals of [0, 1] between `jumps`."""
    ends = sorted({Fraction(jump) for jump in jumps if 0 < jump < 1} | {Fraction(0), Fraction(1)})
    return [(float((a + b) / 2), b - a) for a, b in itertools.pairwise(ends)]


def outcomes(p: np.ndarray, q: np.ndarray, judged_by: np.ndarray | None = None) -> dict[Row, float]:
    """Probability of every committed block, for drafts from q (judged_by: by mistake another)."""
    gamma, vocabulary = q.shape
    known = q if judged_by is None else judged_by
    found: dict[Row, Fraction] = defaultdict(Fraction)
    for drafts in itertools.product(range(vocabulary), repeat=gamma):
        weight = Fraction(1)
        for place, draft in enumerate(drafts):
            weight *= Fraction(float(q[place, draft]))
        if weight == 0:
            continue
        steps = [
            pieces({acceptance_probability(p[place], known[place], draft)})
            for place, draft in enumerate(drafts)
        ]
        last: set[float] = set(np.cumsum(p[gamma]))
        for place in range(gamma):
            last |= set(np.cumsum(residual(p[place], known[place])))
        for chosen in itertools.product(*steps, pieces(last)):
            uniforms = np.array([middle for middle, _ in chosen])
            accepted, token = reject(p, known, list(drafts), uniforms)
            share = weight
            for _, length in chosen:
                share *= length
            found[(*drafts[:accepted], token)] += share
    return {block: float(share) for block, share in found.items()}


def worst_error(p: np.ndarray, found: dict[Row, float]) -> float:
    """Largest difference between the distribution of a token, given those before it, and p."""
    worst = abs(sum(found.values()) - 1.0)
    gamma, vocabulary = len(p) - 1, p.shape[1]
    for place in range(gamma + 1):
        for before in itertools.product(range(vocabulary), repeat=place):
            reached = {b: w for b, w in found.items() if len(b) > place and b[:place] == before}
            total = sum(reached.values())
            if total > 1e-12:
                given = np.zeros(vocabulary)
                for block, weight in reached.items():
                    given[block[place]] += weight / total
                worst = max(worst, float(np.abs(given - p[place]).max()))
    return worst


P: list[Row] = [(6, 4, 2, 0), (3, 3, 6, 0), (0, 12, 0, 0), (5, 5, 1, 1)]
WINDOWS: dict[str, list[Row]] = {
    "no draft": [],
    "an ordinary draft": [(3, 3, 3, 3), (1, 2, 3, 6), (4, 4, 2, 2)],
    "a draft that is the target": P[:3],
    "drafts the target never takes": [(0, 0, 0, 12), (0, 0, 0, 12)],
    "certain drafts, as of a lookup": [(0, 12, 0, 0), (0, 0, 12, 0), (0, 12, 0, 0)],
    "disjoint, then equal": [(0, 0, 0, 12), (3, 3, 6, 0)],
}


@pytest.mark.parametrize("name", WINDOWS)
def test_every_token_follows_the_target(name: str) -> None:
    rows = WINDOWS[name]
    p = exact(P[: len(rows) + 1])
    q = exact(rows) if rows else np.zeros((0, 4))
    found = outcomes(p, q)
    assert worst_error(p, found) < 1e-12
    assert all(p[place, token] > 0 for block in found for place, token in enumerate(block))


def test_all_pairs_of_a_small_grid() -> None:
    """Every p and q of three tokens in quarters, zeros included: 225 pairs."""
    grid = [row for row in itertools.product(range(5), repeat=3) if sum(row) == 4]
    for p_row, q_row in itertools.product(grid, repeat=2):
        p, q = np.array([p_row, (1, 2, 1)]) / 4, np.array([q_row]) / 4
        assert worst_error(p, outcomes(p, q)) < 1e-12, (p_row, q_row)


@pytest.mark.parametrize("limit", [Truncation(2), Truncation(None, 0.6), Truncation(3, 0.7)])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_truncated_on_both_sides_keeps_the_truncated_target(
    limit: Truncation, temperature: float
) -> None:
    generator = torch.Generator().manual_seed(11)

    def truncated(count: int) -> np.ndarray:
        logits = torch.randn(count, 4, generator=generator)
        return distribution(limit.apply(logits, temperature).numpy(), temperature)

    p, q = truncated(3), truncated(2)
    assert (p == 0).any() and (q == 0).any()
    assert worst_error(p, outcomes(p, q)) < 1e-12


def test_the_published_mistake_is_a_quarter_off() -> None:
    """transformers#47932: drafts from the truncated q, judged by the raw one."""
    p = np.array([[0.40, 0.35, 0.25, 0, 0], [0.2] * 5])
    raw = np.array([[0.30, 0.25, 0.20, 0.15, 0.10]])
    top_two = distribution(Truncation(top_k=2).apply(torch.tensor(raw).log(), 1.0).numpy(), 1.0)
    assert top_two[0] == pytest.approx([6 / 11, 5 / 11, 0, 0, 0])

    def committed(found: dict[Row, float]) -> np.ndarray:
        first = np.zeros(5)
        for block, weight in found.items():
            first[block[0]] += weight
        return first

    right, wrong = outcomes(p, top_two), outcomes(p, top_two, judged_by=raw)
    best = outcomes(p, np.eye(5)[:1], judged_by=raw)
    assert np.abs(committed(right) - p[0]).sum() / 2 < 1e-12
    assert committed(wrong) == pytest.approx([0.545, 0.455, 0, 0, 0], abs=1e-3)
    assert np.abs(committed(wrong) - p[0]).sum() / 2 == pytest.approx(0.25, abs=1e-3)
    assert np.abs(committed(best) - p[0]).sum() / 2 == pytest.approx(0.60, abs=1e-3)


def test_a_draft_that_cannot_have_been_drawn_is_an_error() -> None:
    p, q = exact([(6, 6, 0, 0)] * 2), exact([(0, 12, 0, 0)])
    with pytest.raises(ValueError, match="token 0 has q = 0"):
        reject(p, q, [0], np.array([0.5, 0.5]))


@pytest.mark.parametrize("wrong", ["always accept", "draw from p after a rejection"])
def test_the_enumeration_sees_a_wrong_rule(wrong: str) -> None:
    """Otherwise the zeros above would mean nothing."""
    p, q = exact(P[:2]), exact([(3, 3, 3, 3)])
    found: dict[Any, float] = defaultdict(float)
    for draft in range(4):
        accept = 1.0 if wrong == "always accept" else acceptance_probability(p[0], q[0], draft)
        for token in range(4):
            found[(draft, token)] += q[0, draft] * accept * p[1, token]
            found[(token,)] += q[0, draft] * (1 - accept) * p[0, token]
    assert worst_error(p, {block: w for block, w in found.items() if w > 0}) > 0.05
