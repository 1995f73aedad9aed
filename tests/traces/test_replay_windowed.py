"""Windowed replay: the recorded chain and nothing else."""

import dataclasses
from pathlib import Path

import pytest
from trace_samples import SMALL, cut_windows, windowed_trace, write_trace

from policies.errors import UserError
from traces.replay import open_replay, passes
from traces.rows import UNKNOWN_TOKEN
from traces.synthetic import random_dense, synthetic_manifest


def test_the_chain_covers_the_text(tmp_path: Path) -> None:
    replay = open_replay(windowed_trace(tmp_path / "trace", gamma=3))
    windows = list(passes(replay, 3))
    for request in replay.request_ids:
        own = [w for w in windows if w.request == request]
        assert sum(w.committed for w in own) == replay.end(request) - replay.first(request)
        assert sum(w.committed for w in own) == SMALL.tokens
    assert all(w.gamma == 3 and len(w.tokens) == 4 for w in windows)


def test_facts(tmp_path: Path) -> None:
    replay = open_replay(windowed_trace(tmp_path / "trace", gamma=3))
    assert (replay.kind, replay.gamma_limit, replay.fixed_gamma) == ("windowed", 3, 3)
    assert not replay.approximate
    assert len(replay.prompt(0)) == SMALL.prompt_tokens
    prefill = replay.prefill(0)
    assert prefill is not None and len(prefill) == SMALL.prompt_tokens


@pytest.mark.parametrize("gamma", [0, 2, 4])
def test_another_gamma_is_refused(tmp_path: Path, gamma: int) -> None:
    replay = open_replay(windowed_trace(tmp_path / "trace", gamma=3))
    with pytest.raises(UserError, match=rf"recorded with gamma=3, cannot give gamma={gamma}"):
        replay.window(0, replay.first(0), gamma)


def test_a_start_off_the_chain_is_refused(tmp_path: Path) -> None:
    replay = open_replay(windowed_trace(tmp_path / "trace", gamma=3))
    starts = {w.start for w in passes(replay, 3) if w.request == 0}
    missing = min(set(range(replay.first(0), replay.end(0))) - starts)
    with pytest.raises(UserError, match=f"request 0 has no pass at start {missing}"):
        replay.window(0, missing, 3)
    with pytest.raises(UserError, match="has starts"):
        replay.window(0, replay.end(0), 3)


def test_tokens_after_a_cut_are_not_committed(tmp_path: Path) -> None:
    shape = dataclasses.replace(SMALL, acceptance=1.0, tokens=6)
    batch = cut_windows(random_dense(shape, 3, 0), 3, 3)
    manifest = synthetic_manifest(shape, "windowed", 3)
    replay = open_replay(write_trace(tmp_path / "trace", manifest, batch))
    own = [w for w in passes(replay, 3) if w.request == 0]
    assert [w.committed for w in own] == [4, 2]
    assert own[1].choices.tolist()[2:] == [UNKNOWN_TOKEN, UNKNOWN_TOKEN]
    assert own[1].accepted == 2


def test_rejection_sampling_leaves_choices_after_the_first_unknown(tmp_path: Path) -> None:
    """Rows after the rejected draft have no choice; the committed length does not need them."""
    batch = cut_windows(random_dense(SMALL, 3, 1), 3, 3)
    choice, match = batch.target_choice.copy(), batch.match.copy()
    for begin in range(len(batch)):
        if batch.phase[begin] == 1 and batch.row[begin] == 0:
            rejected = begin
            while match[rejected]:
                rejected += 1
            choice[rejected + 1 : begin + 4] = UNKNOWN_TOKEN
            match[rejected + 1 : begin + 4] = False
    cut = dataclasses.replace(batch, target_choice=choice, match=match)
    manifest = synthetic_manifest(SMALL, "windowed", 3)
    replay = open_replay(write_trace(tmp_path / "cut", manifest, cut))
    full = open_replay(write_trace(tmp_path / "full", manifest, batch))
    assert [(w.start, w.accepted, w.committed) for w in passes(replay, 3)] == [
        (w.start, w.accepted, w.committed) for w in passes(full, 3)
    ]


def test_acceptance_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a windowed trace has its own recorded drafts"):
        open_replay(windowed_trace(tmp_path / "trace", gamma=2), acceptance=0.7)
