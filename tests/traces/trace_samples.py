"""Small traces for these tests: directories on disk and windowed recordings cut from dense ones."""

import dataclasses
from pathlib import Path

import numpy as np

from traces.manifest import Kind, Manifest
from traces.reader import Trace, open_trace
from traces.rows import DECODE, UNKNOWN_TOKEN, RowBatch, concatenate_rows
from traces.synthetic import SyntheticShape, markov_text, random_dense, synthetic_manifest
from traces.writer import TraceWriter

SMALL = SyntheticShape()


def assert_equal_rows(left: RowBatch, right: RowBatch) -> None:
    """All columns equal, in values and dtype."""
    for field in dataclasses.fields(RowBatch):
        one, other = getattr(left, field.name), getattr(right, field.name)
        if one is None or other is None:
            assert one is other, field.name
        else:
            assert one.dtype == other.dtype, field.name
            np.testing.assert_array_equal(one, other, err_msg=field.name)


def write_trace(
    path: Path, manifest: Manifest, batch: RowBatch, rows_per_part: int = 10_000
) -> Trace:
    with TraceWriter(path, manifest, rows_per_part=rows_per_part) as writer:
        writer.append(batch)
    return open_trace(path)


def dense_trace(
    path: Path,
    gamma_max: int = 4,
    shape: SyntheticShape = SMALL,
    seed: int = 0,
    rows_per_part: int = 10_000,
) -> Trace:
    batch = random_dense(shape, gamma_max, seed)
    return write_trace(path, synthetic_manifest(shape, "dense", gamma_max), batch, rows_per_part)


def text_trace(path: Path, shape: SyntheticShape = SMALL, seed: int = 0) -> Trace:
    return write_trace(path, synthetic_manifest(shape, "text"), markov_text(shape, seed))


def cut_windows(dense: RowBatch, gamma_max: int, gamma: int) -> RowBatch:
    """What a real recording at `gamma` would hold, by the plainest loop over a dense recording.

    The last window commits at most what the dense text holds; the tokens after the cut become -1.
    """
    pieces = []
    for request in np.unique(dense.request):
        own = dense.take(dense.request == request)
        pieces.append(own.take(own.phase != DECODE))
        decode = own.take(own.phase == DECODE)
        start, end = int(decode.start[0]), int(decode.start[-1]) + 1
        while start < end:
            window = decode.take((decode.start == start) & (decode.row <= gamma))
            choice, match = window.target_choice.copy(), window.match.copy()
            match[-1] = False
            left = end - start
            choice[left:], match[left:] = UNKNOWN_TOKEN, False
            match[:-1] = window.input_token[1:] == choice[:-1]
            pieces.append(dataclasses.replace(window, target_choice=choice, match=match))
            committed = 1
            while committed < left and match[:committed].all() and committed <= gamma:
                committed += 1
            start += committed
    return concatenate_rows(pieces)


def windowed_trace(
    path: Path, gamma: int, gamma_max: int = 4, shape: SyntheticShape = SMALL, seed: int = 0
) -> Trace:
    batch = cut_windows(random_dense(shape, gamma_max, seed), gamma_max, gamma)
    return write_trace(path, synthetic_manifest(shape, "windowed", gamma), batch)


def trace_of_kind(path: Path, kind: Kind) -> Trace:
    if kind == "dense":
        return dense_trace(path)
    return text_trace(path) if kind == "text" else windowed_trace(path, gamma=2)
