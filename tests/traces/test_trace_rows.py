"""RowBatch: conversion, refusal of what does not fit, selection and concatenation."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from trace_samples import SMALL, assert_equal_rows

from policies.errors import UserError
from traces.rows import DECODE, RowBatch, build_rows, concatenate_rows
from traces.synthetic import random_dense


def columns(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "request": 0,
        "phase": DECODE,
        "start": [5, 5, 6],
        "row": [0, 1, 0],
        "input_token": [1, 2, 3],
        "target_choice": [2, 3, -1],
        "match": [True, False, False],
        "experts": np.zeros((3, 2, 1), np.int64),
    }
    return base | changes


def test_build_rows_converts_lists_and_repeats_scalars() -> None:
    batch = build_rows(**columns())
    assert batch.request.tolist() == [0, 0, 0]
    assert batch.experts.dtype == np.uint16
    assert batch.match.dtype == np.bool_
    assert len(batch) == 3


def test_build_rows_keeps_columns_writable_and_apart() -> None:
    start = np.array([5, 5, 6], np.int32)
    batch = build_rows(**columns(start=start))
    batch.start[0] = 9
    assert start[0] == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("row", [0, 1, 40_000]),
        ("request", 1 << 40),
        ("start", [0.5, 1.0, 2.0]),
        ("phase", [0, 1, 300]),
        ("experts", np.full((3, 2, 1), 70_000)),
        ("experts", np.full((3, 2, 1), -1)),
        ("next_layer", np.full((1, 3, 2, 1), 70_000)),
    ],
)
def test_values_that_do_not_fit_are_refused(name: str, value: Any) -> None:
    with pytest.raises(UserError, match=name):
        build_rows(**columns(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("request", np.zeros(3, np.int64)),
        ("match", np.zeros(2, np.bool_)),
        ("experts", np.zeros((3, 2), np.uint16)),
        ("experts", [[[0]]] * 3),
        ("router_weights", np.zeros((3, 2, 2), np.float16)),
        ("router_weights", np.zeros((3, 2, 1), np.float32)),
        ("next_layer", np.zeros((3, 2, 1), np.uint16)),
    ],
)
def test_a_batch_with_a_wrong_column_is_refused(name: str, value: Any) -> None:
    good = build_rows(**columns())
    with pytest.raises(UserError, match=rf"{name} is .*expected"):
        dataclasses.replace(good, **{name: value})


def test_span_and_take_select_every_column() -> None:
    shape = dataclasses.replace(SMALL, lookahead=2, weights=True)
    batch = random_dense(shape, 2, seed=1)
    part = batch.span(3, 8)
    assert len(part) == 5
    assert part.next_layer is not None and part.next_layer.shape[:2] == (2, 5)
    assert_equal_rows(part, batch.take(np.arange(3, 8)))
    mask = np.zeros(len(batch), np.bool_)
    mask[3:8] = True
    assert_equal_rows(part, batch.take(mask))


def test_concatenate_undoes_span() -> None:
    shape = dataclasses.replace(SMALL, lookahead=1, weights=True)
    batch = random_dense(shape, 2, seed=2)
    pieces = [batch.span(0, 4), batch.span(4, 4), batch.span(4, len(batch))]
    assert_equal_rows(concatenate_rows(pieces), batch)
    assert isinstance(concatenate_rows([batch]), RowBatch)
