"""Counts, bits and the bit of one row, as the windows of a replay give them."""

from pathlib import Path

import numpy as np
import pytest

from traces.reader import open_trace
from traces.replay import open_replay, passes
from traces.synthetic import SyntheticShape, random_dense, synthetic_manifest
from traces.window_signals import counts_of, shuffled_rows, window_signals
from traces.writer import TraceWriter

SHAPE = SyntheticShape(layers=3, experts=8, top_k=2, requests=2, tokens=20)


def test_counts_by_hand() -> None:
    experts = np.array([[[[0, 1]], [[1, 2]]]], np.uint16)  # one pass, two rows, one layer
    assert counts_of(experts, 4).tolist() == [[1, 2, 1, 0]]


@pytest.fixture
def trace_path(tmp_path: Path) -> Path:
    path = tmp_path / "trace"
    with TraceWriter(path, synthetic_manifest(SHAPE, "dense", 3)) as writer:
        writer.append(random_dense(SHAPE, 3, seed=5))
    return path


def test_signals_are_those_of_the_passes(trace_path: Path) -> None:
    replay = open_replay(open_trace(trace_path))
    signals = window_signals(replay, 3)
    windows = list(passes(replay, 3))
    assert signals.request.tolist() == [window.request for window in windows]
    cells = SHAPE.layers * SHAPE.experts
    for window, count, row in zip(windows, signals.count, signals.row, strict=True):
        expected, single = np.zeros(cells, int), np.zeros(cells, int)
        for place, chosen in enumerate(window.experts):
            for layer in range(SHAPE.layers):
                for expert in chosen[layer]:
                    expected[layer * SHAPE.experts + expert] += 1
                    single[layer * SHAPE.experts + expert] += place == window.accepted
        assert count.tolist() == expected.tolist() and row.tolist() == single.tolist()
    assert (signals.bit == (signals.count > 0)).all()


def test_shuffling_keeps_rows_and_moves_them(trace_path: Path) -> None:
    experts = window_signals(open_replay(open_trace(trace_path)), 3).experts
    mixed = shuffled_rows(experts, seed=0)
    assert mixed.shape == experts.shape and (mixed != experts).any()
    flat = [sorted(map(bytes, rows.reshape(-1, *rows.shape[2:]))) for rows in (experts, mixed)]
    assert flat[0] == flat[1]
