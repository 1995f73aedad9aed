"""Layout rules: a good batch has no problems, and each kind of damage is named with its place."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from trace_samples import SMALL, cut_windows

from traces.layout import layout_problems, request_bounds, value_problems
from traces.rows import RowBatch
from traces.synthetic import markov_text, random_dense, synthetic_manifest

GAMMA = 3
WINDOW = GAMMA + 1
PROMPT = SMALL.prompt_tokens
DENSE = synthetic_manifest(SMALL, "dense", GAMMA)


def changed(batch: RowBatch, name: str, index: Any, value: Any) -> RowBatch:
    column = getattr(batch, name).copy()
    column[index] = value
    return dataclasses.replace(batch, **{name: column})


def test_synthetic_rows_of_all_kinds_are_sound() -> None:
    dense = random_dense(SMALL, GAMMA, 0)
    assert layout_problems(dense, DENSE) == []
    assert value_problems(dense, DENSE) == []
    text = synthetic_manifest(SMALL, "text")
    assert layout_problems(markov_text(SMALL, 0), text) == []
    for gamma in range(GAMMA + 1):
        windows = cut_windows(dense, GAMMA, gamma)
        assert layout_problems(windows, synthetic_manifest(SMALL, "windowed", gamma)) == []


def test_no_rows_are_no_problem() -> None:
    empty = random_dense(SMALL, GAMMA, 0).span(0, 0)
    assert layout_problems(empty, DENSE) == []
    assert request_bounds(empty.request) == []


def test_request_bounds() -> None:
    request = np.array([2, 2, 5, 7, 7, 7], np.int32)
    assert request_bounds(request) == [(2, 0, 2), (5, 2, 3), (7, 3, 6)]


Damage = Callable[[RowBatch], RowBatch]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda b: changed(b, "phase", PROMPT, 0), "prefill rows must have start 0"),
        (lambda b: changed(b, "phase", 0, 1), "prefill rows .phase 0. must come first"),
        (lambda b: changed(b, "row", 1, 3), "prefill rows must have start 0 and rows"),
        (lambda b: changed(b, "start", 1, 1), "prefill rows must have start 0"),
        (lambda b: changed(b, "target_choice", 1, 4), "prefill rows must have target_choice -1"),
        (lambda b: changed(b, "match", 1, True), "prefill rows must have target_choice -1"),
        (lambda b: changed(b, "row", PROMPT + 1, 2), "must be rows 0..3"),
        (lambda b: changed(b, "start", PROMPT + 1, 99), "must be rows 0..3"),
        (lambda b: changed(b, "match", PROMPT + GAMMA, True), "match flags of start 5 contradict"),
        (lambda b: b.span(0, PROMPT), "0 decode rows, need a positive multiple"),
        (lambda b: b.span(0, PROMPT + 6), "6 decode rows, need a positive multiple .* = 4"),
        (lambda b: b.span(1, len(b)), "prefill rows must have start 0 and rows 0"),
        (
            lambda b: b.take(np.r_[0:PROMPT, PROMPT + WINDOW : len(b)]),
            "first decode start 6 after 5 prefill rows",
        ),
        (
            lambda b: b.take(np.r_[0 : PROMPT + WINDOW, PROMPT + 2 * WINDOW : len(b)]),
            "start 5 is followed by 7, expected 6",
        ),
    ],
)
def test_damage_is_named(damage: Damage, message: str) -> None:
    own = random_dense(SMALL, GAMMA, 0)
    problems = layout_problems(damage(own.take(own.request == 0)), DENSE)
    assert len(problems) == 1
    assert problems[0].startswith("request 0: ")
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(problems[0])


def test_requests_must_ascend() -> None:
    batch = random_dense(SMALL, GAMMA, 0)
    turned = batch.take(np.argsort(-batch.request, kind="stable"))
    assert layout_problems(turned, DENSE) == ["request numbers do not ascend"]


def test_a_windowed_chain_with_a_missing_pass_is_named() -> None:
    windows = cut_windows(random_dense(SMALL, GAMMA, 0), GAMMA, 2)
    manifest = synthetic_manifest(SMALL, "windowed", 2)
    broken = windows.take(np.r_[0 : PROMPT + 3, PROMPT + 6 : len(windows)])
    assert "start 5 is followed by" in layout_problems(broken, manifest)[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 5}, "4 layers x 2, the manifest says 5 x 2"),
        ({"experts": 3, "top_k": 2}, "expert number .* in a model of 3 experts"),
        ({"weights": True}, "router_weights is absent, the manifest says otherwise"),
        ({"lookahead": 1}, "next_layer is absent"),
    ],
)
def test_values_that_contradict_the_manifest(change: dict[str, Any], message: str) -> None:
    manifest = synthetic_manifest(dataclasses.replace(SMALL, **change), "dense", GAMMA)
    problems = value_problems(random_dense(SMALL, GAMMA, 0), manifest)
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(problems[0])


def test_next_layer_values_are_checked() -> None:
    shape = dataclasses.replace(SMALL, lookahead=2)
    manifest = synthetic_manifest(shape, "dense", GAMMA)
    batch = random_dense(shape, GAMMA, 0)
    assert value_problems(batch, manifest) == []
    assert (
        "next_layer_2 has an expert number"
        in value_problems(changed(batch, "next_layer", (1, 0, 0, 0), 16), manifest)[0]
    )
    assert (
        "next_layer_1 has no filler"
        in value_problems(changed(batch, "next_layer", (0, 0, -1, 0), 1), manifest)[0]
    )
    assert batch.next_layer is not None
    short = dataclasses.replace(batch, next_layer=batch.next_layer[:1])
    assert "has 1 distances, the manifest 2" in value_problems(short, manifest)[0]


def test_a_windowed_pass_cut_in_the_middle_advances_by_what_it_committed() -> None:
    """Without a known choice after the accepted drafts, only the drafts were committed."""
    windows = cut_windows(random_dense(SMALL, GAMMA, 0), GAMMA, 2)
    own = windows.take(windows.request == 0)
    manifest = synthetic_manifest(SMALL, "windowed", 2)
    chain = own.start[PROMPT::3].tolist()
    at = next(i for i in range(len(chain) - 1) if chain[i + 1] - chain[i] == 2)
    unknown = changed(own, "target_choice", PROMPT + 3 * at + 1, -1)
    expected = f"start {chain[at]} is followed by {chain[at + 1]}, expected {chain[at] + 1}"
    assert layout_problems(unknown, manifest) == [f"request 0: {expected}"]
