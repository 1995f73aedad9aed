from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policies.errors import UserError
from runtime.margins import MarginLog
from runtime.prompts import Prompt
from runtime.recorder import RecordingSettings, record_dense, record_windowed
from runtime.recording_session import repeated_share
from traces.manifest import SamplingInfo
from traces.reader import open_trace
from traces.replay import open_replay, passes
from traces.rows import DECODE, PREFILL, RowBatch

KEYED = SamplingInfo("keyed", 0.8, 1)
SETTINGS = RecordingSettings("test", 4, KEYED, 24)


def rows_of(batch: RowBatch, request: int, phase: int) -> RowBatch:
    return batch.take((batch.request == request) & (batch.phase == phase))


def test_dense_rows(tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path) -> None:
    summary = record_dense(tmp_path / "t", tiny.target, tiny.draft, tiny_prompts, SETTINGS)
    trace = open_trace(tmp_path / "t", verify=True)
    batch = trace.load()
    for request, prompt in enumerate(tiny_prompts):
        prefill = rows_of(batch, request, PREFILL)
        assert prefill.input_token.tolist() == list(prompt.tokens)
        decode = rows_of(batch, request, DECODE)
        text = [*prompt.tokens, *summary.texts[request]]
        starts = list(range(len(prompt.tokens), len(text) - 1))
        assert decode.start.reshape(-1, 5)[:, 0].tolist() == starts
        assert decode.input_token.reshape(-1, 5)[:, 0].tolist() == text[starts[0] : -1]
        assert decode.target_choice.reshape(-1, 5)[:, 0].tolist() == text[starts[0] + 1 :]
    accepted = [window.accepted for window in passes(open_replay(trace), 4)]
    assert 0 in accepted and max(accepted) >= 3, "both rejected and accepted drafts occur"


def test_manifest(tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path) -> None:
    settings = replace(SETTINGS, next_layer=True, router_weights=True, notes={"why": "test"})
    record_dense(tmp_path / "t", tiny.target, tiny.draft, tiny_prompts, settings)
    manifest = open_trace(tmp_path / "t").manifest
    assert manifest.complete
    assert (manifest.kind, manifest.workload, manifest.gamma_max) == ("dense", "test", 4)
    assert (manifest.model.layers, manifest.model.experts, manifest.model.top_k) == (3, 8, 2)
    assert manifest.model.expert_bytes == 3 * 32 * 24 * 4
    assert manifest.sampling == KEYED
    assert manifest.draft is not None and manifest.draft.endswith("/draft")
    assert manifest.columns == ("router_weights", "next_layer_1", "next_layer_2", "next_layer_3")
    assert manifest.notes["dtype"] == "float32"
    assert manifest.notes["why"] == "test"
    assert manifest.notes["near_ties"] == "0 choices below 0.0001"


@pytest.mark.parametrize("kind", ["dense", "windowed"])
def test_the_same_recording_gives_the_same_bytes(
    tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path, kind: str
) -> None:
    function = record_dense if kind == "dense" else record_windowed
    for name in ("a", "b"):
        function(tmp_path / name, tiny.target, tiny.draft, tiny_prompts, SETTINGS)
    digests = [open_trace(tmp_path / name).digest for name in ("a", "b")]
    assert digests[0] == digests[1]


def test_windowed_rows_follow_the_committed_text(
    tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path
) -> None:
    summary = record_windowed(tmp_path / "t", tiny.target, tiny.draft, tiny_prompts, SETTINGS)
    replay = open_replay(open_trace(tmp_path / "t", verify=True))
    for request, prompt in enumerate(tiny_prompts):
        text = [*prompt.tokens, *summary.texts[request]]
        start = replay.first(request)
        assert start == len(prompt.tokens)
        while start < replay.end(request):
            window = replay.window(request, start, 4)
            assert window.tokens[0] == text[start]
            rest = text[start + 1 : start + 1 + window.committed]
            assert window.choices[: window.committed].tolist() == rest
            start += window.committed
        assert start == len(text) - 1


def test_plain_decoding_needs_no_draft(
    tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path
) -> None:
    plain = replace(SETTINGS, gamma=0)
    alone = record_windowed(tmp_path / "a", tiny.target, None, tiny_prompts, plain)
    drafted = record_windowed(tmp_path / "b", tiny.target, tiny.draft, tiny_prompts, SETTINGS)
    assert alone.texts == drafted.texts
    manifest = open_trace(tmp_path / "a").manifest
    assert (manifest.draft, manifest.gamma_max) == (None, 0)


def test_rejection_sampling_is_windowed_only(
    tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path
) -> None:
    settings = replace(SETTINGS, sampling=SamplingInfo("rejection", 0.8, 1))
    with pytest.raises(UserError, match="cannot be recorded densely"):
        record_dense(tmp_path / "no", tiny.target, tiny.draft, tiny_prompts, settings)
    assert not (tmp_path / "no").exists()
    summary = record_windowed(tmp_path / "t", tiny.target, tiny.draft, tiny_prompts, settings)
    windows = list(passes(open_replay(open_trace(tmp_path / "t", verify=True)), 4))
    first_tokens = len(tiny_prompts)
    assert sum(window.committed for window in windows) == summary.committed - first_tokens
    assert max(window.accepted for window in windows) >= 2


def test_texts_end_with_the_end_token(tiny: Any, tmp_path: Path) -> None:
    settings = replace(SETTINGS, gamma=8, max_new_tokens=60)
    prompts = [Prompt(str(number), (number + 6, 2 * number + 7)) for number in range(12)]
    dense = record_dense(tmp_path / "d", tiny.target, tiny.draft, prompts, settings)
    ended = [text for text in dense.texts.values() if text[-1] == 5]
    assert len(ended) >= 3
    assert all(5 not in text[:-1] for text in dense.texts.values())
    for gamma in (1, 4, 8):
        path, own = tmp_path / f"w{gamma}", replace(settings, gamma=gamma)
        real = record_windowed(path, tiny.target, tiny.draft, prompts, own)
        assert real.texts == dense.texts
        replays = [open_replay(open_trace(where, verify=True)) for where in (tmp_path / "d", path)]
        for ours, theirs in zip(*(list(passes(replay, gamma)) for replay in replays), strict=True):
            assert (ours.start, ours.committed) == (theirs.start, theirs.committed)
            assert np.array_equal(ours.tokens, theirs.tokens)


def test_a_text_of_one_token_is_left_out(tiny: Any, tmp_path: Path) -> None:
    """A trace holds windows; a request that ends with its first token has none."""
    prompts = [Prompt(str(token), (token,)) for token in range(64)]
    settings = replace(SETTINGS, gamma=1, max_new_tokens=2, sampling=SamplingInfo("keyed", 4.0, 3))
    for record, name in ((record_dense, "d"), (record_windowed, "w")):
        summary = record(tmp_path / name, tiny.target, tiny.draft, prompts, settings)
        assert summary.skipped, "no text ended at once; choose another seed"
        trace = open_trace(tmp_path / name, verify=True)
        replay = open_replay(trace)
        assert set(replay.request_ids) == set(range(64)) - set(summary.skipped)
        assert "requests that ended at once" in trace.manifest.notes["skipped"]


def test_progress_and_parts(tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    settings = replace(SETTINGS, rows_per_part=1)
    summary = record_dense(
        tmp_path / "t",
        tiny.target,
        tiny.draft,
        tiny_prompts,
        settings,
        progress=lambda request, tokens: seen.append((request, tokens)),
    )
    assert [tokens for _, tokens in seen] == list(range(1, summary.committed + 1))
    assert [request for request, _ in seen] == sorted(request for request, _ in seen)
    assert len(open_trace(tmp_path / "t").manifest.parts) == len(tiny_prompts)


def test_an_error_keeps_the_finished_requests(
    tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path
) -> None:
    def fail(request: int, tokens: int) -> None:
        if request == 2:
            raise KeyboardInterrupt

    hooks_before = [len(router._forward_hooks) for router in tiny.target.routers]
    with pytest.raises(KeyboardInterrupt):
        record_windowed(
            tmp_path / "t", tiny.target, tiny.draft, tiny_prompts, SETTINGS, progress=fail
        )
    trace = open_trace(tmp_path / "t", verify=True)
    assert not trace.manifest.complete
    assert open_replay(trace).request_ids == (0,), "request 1 ended the trace, its end was not seen"
    assert [len(router._forward_hooks) for router in tiny.target.routers] == hooks_before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_new_tokens": 97}, r"outside 2..96"),
        ({"max_new_tokens": 1}, r"outside 2..96"),
        ({"gamma": 0}, "at least 1 for a dense trace"),
        ({"gamma": 480}, "504 more do not fit the model's 512"),
    ],
)
def test_impossible_settings(
    tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    settings = replace(SETTINGS, **change)
    with pytest.raises(UserError, match=message):
        record_dense(tmp_path / "t", tiny.target, tiny.draft, tiny_prompts, settings)
    assert not (tmp_path / "t").exists()


def test_an_existing_trace_is_never_overwritten(
    tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path
) -> None:
    record_windowed(tmp_path / "t", tiny.target, tiny.draft, tiny_prompts[:1], SETTINGS)
    digest = open_trace(tmp_path / "t").digest
    with pytest.raises(UserError, match="never overwritten"):
        record_windowed(tmp_path / "t", tiny.target, tiny.draft, tiny_prompts[:1], SETTINGS)
    assert open_trace(tmp_path / "t").digest == digest


def test_near_ties_are_noted(
    tiny: Any, tiny_prompts: Sequence[Prompt], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runtime import margins

    monkeypatch.setattr(margins, "NEAR_TIE", 0.05)
    log = MarginLog(keep_windows=True)
    summary = record_dense(
        tmp_path / "t", tiny.target, tiny.draft, tiny_prompts, SETTINGS, margins=log
    )
    assert summary.near_ties
    for tie in summary.near_ties:
        start = tie.position - 1
        known = log.windows.get((tie.request, start))
        expected = log.first[tie.request] if known is None else known.score[0]
        assert tie.margin == expected < 0.05
    assert str(summary.near_ties[0]) in open_trace(tmp_path / "t").manifest.notes["near_ties"]


def test_repeated_share() -> None:
    assert repeated_share([[1, 2, 3]]) == 0.0
    assert repeated_share([[1, 2, 3, 4, 1, 2, 3, 4]]) == pytest.approx(1 / 5)
    assert repeated_share([[1, 1, 1, 1, 1], [1, 1, 1, 1, 1]]) == pytest.approx(0.5)
