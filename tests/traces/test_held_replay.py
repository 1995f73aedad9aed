"""A held replay answers as the replay it holds, and reads each request once."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from trace_samples import SMALL, cut_windows, dense_trace, text_trace, write_trace

from policies.errors import UserError
from traces.held_replay import HeldReplay
from traces.reader import Trace
from traces.replay import Replay, open_replay
from traces.request_arrays import RequestArrays
from traces.synthetic import random_dense, synthetic_manifest
from traces.window import Window

KINDS = pytest.mark.parametrize("kind", ["dense", "text", "windowed"])
FACTS = (
    "model", "kind", "gamma_limit", "fixed_gamma", "approximate", "columns", "request_ids",
)  # fmt: skip


def opened(folder: Path, kind: str) -> Replay:
    if kind == "dense":
        return open_replay(dense_trace(folder / kind, rows_per_part=40))
    if kind == "text":
        return open_replay(text_trace(folder / kind), acceptance=0.7)
    rows = cut_windows(random_dense(SMALL, 4, seed=0), 4, 4)
    return open_replay(write_trace(folder / kind, synthetic_manifest(SMALL, "windowed", 4), rows))


def assert_same_arrays(one: RequestArrays, other: RequestArrays) -> None:
    for name in RequestArrays._fields:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@KINDS
@pytest.mark.parametrize("limit", [0, 5_000, 1 << 30])
def test_it_answers_as_the_replay_does(tmp_path: Path, kind: str, limit: int) -> None:
    plain, held = opened(tmp_path / "one", kind), HeldReplay(opened(tmp_path / "two", kind), limit)
    for fact in FACTS:
        assert getattr(held, fact) == getattr(plain, fact), fact
    for _ in range(2):
        for request in reversed(plain.request_ids):
            np.testing.assert_array_equal(held.prompt(request), plain.prompt(request))
            np.testing.assert_array_equal(held.prefill(request), plain.prefill(request))
            assert (held.first(request), held.end(request)) == (
                plain.first(request), plain.end(request),
            )  # fmt: skip
            assert_same_arrays(held.arrays(request), plain.arrays(request))


def outcome(replay: Replay, request: int, start: int, gamma: int) -> Window | str:
    try:
        return replay.window(request, start, gamma)
    except UserError as error:
        return str(error)


@KINDS
def test_every_window_and_every_refusal_is_that_of_the_replay(tmp_path: Path, kind: str) -> None:
    plain = opened(tmp_path, kind)
    held, windows = HeldReplay(plain), 0
    for request in plain.request_ids:
        for start in range(plain.first(request) - 1, plain.end(request) + 1):
            for gamma in range(-1, 6):
                expected, found = (outcome(each, request, start, gamma) for each in (plain, held))
                if isinstance(expected, str) or isinstance(found, str):
                    assert expected == found
                    continue
                windows += 1
                for field in dataclasses.fields(Window):
                    np.testing.assert_array_equal(
                        getattr(found, field.name), getattr(expected, field.name), field.name
                    )
    assert windows > 20


def reads_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the index of each part that is read from now on."""
    reads: list[int] = []
    honest = Trace.read_part

    def counted(trace: Trace, index: int, *arguments: object) -> object:
        reads.append(index)
        return honest(trace, index, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Trace, "read_part", counted)
    return reads


def play(replay: Replay, runs: int) -> None:
    for _ in range(runs):
        for request in replay.request_ids:
            replay.prompt(request)
        for request in replay.request_ids:
            replay.arrays(request)
            replay.window(request, replay.first(request), 2)


@pytest.mark.parametrize("kind", ["dense", "windowed", "text"])
def test_lengths_of_prompts_read_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    replay = HeldReplay(opened(tmp_path, kind))
    reads = reads_of(monkeypatch)
    lengths = [replay.prompt_length(request) for request in replay.request_ids]
    assert reads == []
    assert lengths == [len(replay.prompt(request)) for request in replay.request_ids]


def test_many_runs_read_each_part_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replay = opened(tmp_path, "dense")
    reads = reads_of(monkeypatch)
    play(HeldReplay(replay), runs=3)
    assert len(reads) > 1 and len(set(reads)) == len(reads)


def test_beyond_the_limit_parts_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = opened(tmp_path, "dense")
    reads = reads_of(monkeypatch)
    play(HeldReplay(replay, limit_bytes=0), runs=3)
    assert len(reads) > len(set(reads))
