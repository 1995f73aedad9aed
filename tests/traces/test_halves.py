"""Halves of a trace share no request; a null keeps what is counted and loses the order."""

from pathlib import Path

import numpy as np
import pytest

from policies.errors import UserError
from traces.check import check_trace
from traces.halves import write_half, write_null
from traces.reader import Trace, open_trace
from traces.rows import DECODE
from traces.synthetic import SyntheticShape, markov_text, random_dense, synthetic_manifest
from traces.writer import TraceWriter

SHAPE = SyntheticShape(layers=2, experts=12, top_k=2, requests=5, tokens=60, reuse=0.8, lookahead=1)


@pytest.fixture(params=["dense", "text"])
def trace(request: pytest.FixtureRequest, tmp_path: Path) -> Trace:
    dense = request.param == "dense"
    path = tmp_path / "whole"
    with TraceWriter(path, synthetic_manifest(SHAPE, request.param, 2 if dense else 0)) as writer:
        writer.append(random_dense(SHAPE, 2, seed=3) if dense else markov_text(SHAPE, seed=3))
    return open_trace(path)


def requests_of(trace: Trace) -> list[int]:
    return np.unique(trace.load().request).tolist()


def test_halves_are_disjoint_and_whole(trace: Trace, tmp_path: Path) -> None:
    first = write_half(trace, "development", 2, tmp_path / "first")
    second = write_half(trace, "held_out", 3, tmp_path / "second")
    assert requests_of(first) == [0, 1] and requests_of(second) == [2, 3, 4]
    whole = trace.load()
    kept = whole.take(whole.request >= 2)
    assert np.array_equal(second.load().experts, kept.experts)
    assert not check_trace(second.path).problems
    assert requests_of(write_half(trace, "held_out", 2, tmp_path / "less")) == [2, 3]


def test_more_requests_than_a_half_has(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="3 requests asked for, the development half has 2"):
        write_half(trace, "development", 3, tmp_path / "half")


def test_a_null_keeps_counts_and_loses_order(trace: Trace, tmp_path: Path) -> None:
    null = write_null(trace, 7, tmp_path / "null")
    real, shuffled = trace.load(), null.load()
    assert null.manifest.workload.endswith(", routing shuffled")
    for name in ("request", "phase", "start", "row", "input_token", "target_choice", "match"):
        assert np.array_equal(getattr(real, name), getattr(shuffled, name)), name
    decode = real.phase == DECODE
    assert np.array_equal(real.experts[~decode], shuffled.experts[~decode])
    for layer in range(SHAPE.layers):
        counts = [
            np.bincount(rows.experts[decode, layer].ravel(), minlength=SHAPE.experts).tolist()
            for rows in (real, shuffled)
        ]
        assert counts[0] == counts[1]
    assert reuse(shuffled.experts[decode]) < reuse(real.experts[decode]) - 0.2
    # Whole rows move: predictions stay with their routing.
    assert shuffled.next_layer is not None
    assert np.array_equal(shuffled.next_layer[0, decode, 0], shuffled.experts[decode, 1])


def reuse(experts: np.ndarray) -> float:
    """Share of a row's experts that the row before had, mean over layers."""
    found = [
        len(np.intersect1d(experts[row, layer], experts[row - 1, layer])) / experts.shape[2]
        for row in range(1, len(experts))
        for layer in range(experts.shape[1])
    ]
    return float(np.mean(found))
