"""Dense replay: equal to the brute-force definition and to real recordings at every gamma."""

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import SMALL, dense_trace, windowed_trace, write_trace

from policies.errors import UserError
from traces.replay import Replay, open_replay, passes
from traces.rows import RowBatch
from traces.synthetic import SyntheticShape, random_dense, synthetic_manifest
from traces.window import Window

GAMMA_MAX = 4


def brute_force(batch: RowBatch, request: int, start: int, gamma: int) -> tuple[int, list[int]]:
    """(accepted, committed tokens) by the definition, from tokens alone and one row at a time."""
    token = {}
    choice = {}
    for index in range(len(batch)):
        if batch.request[index] == request and batch.phase[index] == 1:
            key = (int(batch.start[index]), int(batch.row[index]))
            token[key] = int(batch.input_token[index])
            choice[key] = int(batch.target_choice[index])
    accepted = max(
        j
        for j in range(gamma + 1)
        if all(token[start, i] == choice[start, i - 1] for i in range(1, j + 1))
    )
    drafts = [token[start, i] for i in range(1, accepted + 1)]
    return accepted, [*drafts, choice[start, accepted]]


def text_of(batch: RowBatch, request: int) -> list[int]:
    """Tokens that the dense recording committed: y_{t,0} of every start."""
    rows = (batch.request == request) & (batch.phase == 1) & (batch.row == 0)
    return batch.target_choice[rows].tolist()


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    acceptance=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    gamma_max=st.integers(0, 4),
    data=st.data(),
)
def test_windows_follow_the_definition_with_any_gamma_per_pass(
    seed: int, acceptance: float, gamma_max: int, data: st.DataObject
) -> None:
    shape = SyntheticShape(
        layers=2, requests=2, tokens=10, vocabulary=4, acceptance=acceptance, lookahead=1
    )
    batch = random_dense(shape, gamma_max, seed)
    with TemporaryDirectory() as folder:
        manifest = synthetic_manifest(shape, "dense", gamma_max)
        replay = open_replay(write_trace(Path(folder) / "trace", manifest, batch))
        for request in replay.request_ids:
            start, end = replay.first(request), replay.end(request)
            text: list[int] = []
            while start < end:
                gamma = data.draw(st.integers(0, gamma_max))
                window = replay.window(request, start, gamma)
                accepted, committed = brute_force(batch, request, start, gamma)
                assert window.accepted == min(accepted, end - start)
                committed = committed[: end - start]
                assert window.committed == len(committed)
                assert_window_rows(window, batch)
                text += committed
                start += window.committed
            assert start == end
            assert text == text_of(batch, request)


def assert_window_rows(window: Window, batch: RowBatch) -> None:
    rows = (batch.request == window.request) & (batch.phase == 1)
    rows &= (batch.start == window.start) & (batch.row <= window.gamma)
    np.testing.assert_array_equal(window.tokens, batch.input_token[rows])
    np.testing.assert_array_equal(window.choices, batch.target_choice[rows])
    np.testing.assert_array_equal(window.experts, batch.experts[rows])
    assert window.next_layer is not None and batch.next_layer is not None
    np.testing.assert_array_equal(window.next_layer, batch.next_layer[:, rows])
    assert window.weights is None
    assert not window.approximate


@pytest.mark.parametrize("gamma", range(GAMMA_MAX + 1))
def test_replay_equals_a_recording_at_that_gamma(tmp_path: Path, gamma: int) -> None:
    dense = open_replay(dense_trace(tmp_path / "dense", GAMMA_MAX, seed=3))
    real = open_replay(windowed_trace(tmp_path / "real", gamma, GAMMA_MAX, seed=3))
    replayed, recorded = list(passes(dense, gamma)), list(passes(real, gamma))
    assert len(replayed) == len(recorded)
    for one, other in zip(replayed, recorded, strict=True):
        assert facts_of(one) == facts_of(other)
        np.testing.assert_array_equal(one.tokens, other.tokens)
        np.testing.assert_array_equal(one.experts, other.experts)


def facts_of(window: Window) -> tuple[int, ...]:
    return window.request, window.start, window.gamma, window.accepted, window.committed


def facts(replay: Replay) -> tuple[object, ...]:
    return replay.kind, replay.gamma_limit, replay.fixed_gamma, replay.approximate


def test_facts(tmp_path: Path) -> None:
    shape = dataclasses.replace(SMALL, weights=True, lookahead=2)
    replay = open_replay(dense_trace(tmp_path / "trace", GAMMA_MAX, shape))
    assert facts(replay) == ("dense", GAMMA_MAX, None, False)
    assert replay.columns == {"router_weights", "next_layer_1", "next_layer_2"}
    assert replay.model.layers == SMALL.layers
    assert replay.request_ids == (0, 1, 2)
    window = replay.window(1, replay.first(1), 2)
    assert window.weights is not None and window.weights.shape == (3, 4, 2)


def test_prompt_and_prefill(tmp_path: Path) -> None:
    trace = dense_trace(tmp_path / "trace", GAMMA_MAX)
    replay, batch = open_replay(trace), trace.load()
    rows = (batch.request == 1) & (batch.phase == 0)
    np.testing.assert_array_equal(replay.prompt(1), batch.input_token[rows])
    np.testing.assert_array_equal(replay.prefill(1), batch.experts[rows])
    assert replay.prompt_length(1) == rows.sum() > 0
    assert replay.first(1) == SMALL.prompt_tokens


def test_a_trace_without_prefill(tmp_path: Path) -> None:
    shape = dataclasses.replace(SMALL, prompt_tokens=0)
    replay = open_replay(dense_trace(tmp_path / "trace", GAMMA_MAX, shape))
    assert replay.prefill(0) is None
    assert replay.prompt(0).tolist() == [] and replay.prompt_length(0) == 0
    assert replay.first(0) == 0


def test_requests_may_be_visited_in_any_order(tmp_path: Path) -> None:
    replay = open_replay(dense_trace(tmp_path / "trace", GAMMA_MAX))
    expected = {(w.request, w.start): w.committed for w in passes(replay, 2)}
    fresh = open_replay(dense_trace(tmp_path / "again", GAMMA_MAX))
    for request, start in sorted(expected, key=lambda key: (key[1], -key[0])):
        # The prompt of another request in between must not confuse the current one.
        fresh.prompt((request + 1) % 3)
        assert fresh.window(request, start, 2).committed == expected[request, start]


def test_the_last_pass_is_clipped_to_the_end(tmp_path: Path) -> None:
    shape = dataclasses.replace(SMALL, acceptance=1.0, tokens=7)
    replay = open_replay(dense_trace(tmp_path / "trace", GAMMA_MAX, shape))
    last = list(passes(replay, GAMMA_MAX))[-1]
    assert (last.accepted, last.committed) == (2, 2)
    assert len(last.tokens) == GAMMA_MAX + 1


def test_gamma_zero_commits_one_token_a_pass(tmp_path: Path) -> None:
    replay = open_replay(dense_trace(tmp_path / "trace", GAMMA_MAX))
    windows = list(passes(replay, 0))
    assert [w.committed for w in windows] == [1] * (SMALL.tokens * SMALL.requests)


@pytest.mark.parametrize("gamma", [-1, GAMMA_MAX + 1])
def test_a_gamma_that_was_not_recorded_is_refused(tmp_path: Path, gamma: int) -> None:
    replay = open_replay(dense_trace(tmp_path / "trace", GAMMA_MAX))
    with pytest.raises(UserError, match=rf"gamma {gamma} is outside 0\.\.4.*larger gamma_max"):
        replay.window(0, replay.first(0), gamma)


def test_a_start_outside_the_request_is_refused(tmp_path: Path) -> None:
    replay = open_replay(dense_trace(tmp_path / "trace", GAMMA_MAX))
    for start in (replay.first(0) - 1, replay.end(0)):
        with pytest.raises(UserError, match=rf"request 0 has starts 5\.\.28, not {start}"):
            replay.window(0, start, 1)


def test_acceptance_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a dense trace has its own recorded drafts"):
        open_replay(dense_trace(tmp_path / "trace"), acceptance=0.7)
