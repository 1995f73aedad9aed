"""Record a trace: what the routers of a target choose while it decodes with a draft.

`record_dense` gives a trace that can be replayed at any gamma up to the recorded one; it runs one
window per token. `record_windowed` records real speculative decoding at one gamma, for models where
that is too slow; with gamma 0 it is plain decoding.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from policies.errors import UserError
from runtime.dense_recording import DenseRecording
from runtime.draft_model import DraftModel
from runtime.margins import MarginLog
from runtime.prompts import Prompt
from runtime.recorded_rows import RecordedRows
from runtime.recording_listener import RecordingListener
from runtime.recording_session import (
    Progress,
    RecordingSession,
    RecordingSettings,
    RecordingSummary,
)
from runtime.speculative import SpeculativeDecoder
from runtime.target_model import TargetModel
from runtime.verify_rules import KeyedRule, make_rule
from traces.writer import TraceWriter

__all__ = ["RecordingSettings", "RecordingSummary", "record_dense", "record_windowed"]


def record_dense(
    out: str | Path,
    target: TargetModel,
    draft: DraftModel,
    prompts: Sequence[Prompt],
    settings: RecordingSettings,
    *,
    writer: Callable[..., TraceWriter] = TraceWriter,
    progress: Progress | None = None,
    margins: MarginLog | None = None,
) -> RecordingSummary:
    """Write a dense trace to the new directory `out`.

    progress(request, new tokens so far) is called after each token; `writer` makes the TraceWriter.
    """
    check_dense(settings)
    session = RecordingSession(target, draft, prompts, settings, margins, progress)
    rule = make_rule(settings.sampling, target.facts.vocabulary, target.device, settings.truncation)
    assert isinstance(rule, KeyedRule)
    recording = DenseRecording(
        target, draft, rule, settings.gamma, session.capture, session.margins
    )
    with (
        session.capture,
        writer(Path(out), session.manifest("dense"), settings.rows_per_part) as trace,
    ):
        for request, prompt in enumerate(prompts):
            rows = RecordedRows(request, settings.router_weights)
            text = []
            for token in recording.tokens(request, prompt.tokens, session.stop, rows):
                text.append(token)
                session.count(request, 1)
            session.finish(trace, request, rows, text)
        return session.summary(trace)


def check_dense(settings: RecordingSettings) -> None:
    """UserError for settings that no dense trace can be recorded with."""
    mode = settings.sampling.mode
    if mode == "rejection":
        raise UserError(
            f"sampling.mode={mode} depends on the window, so it cannot be recorded densely; use "
            "keyed or greedy, or kind=windowed"
        )
    if settings.gamma < 1:
        raise UserError(f"gamma={settings.gamma} must be at least 1 for a dense trace")


def record_windowed(
    out: str | Path,
    target: TargetModel,
    draft: DraftModel | None,
    prompts: Sequence[Prompt],
    settings: RecordingSettings,
    *,
    writer: Callable[..., TraceWriter] = TraceWriter,
    progress: Progress | None = None,
    margins: MarginLog | None = None,
) -> RecordingSummary:
    """Write a windowed trace of real decoding to `out`, a new directory; gamma 0 needs no draft."""
    session = RecordingSession(target, draft, prompts, settings, margins, progress)
    rule = make_rule(settings.sampling, target.facts.vocabulary, target.device, settings.truncation)
    listener = RecordingListener(session.capture, settings.router_weights, session.margins)
    decoder = SpeculativeDecoder(target, draft, rule, settings.gamma, listener)
    with (
        session.capture,
        writer(Path(out), session.manifest("windowed"), settings.rows_per_part) as trace,
    ):
        for request, prompt in enumerate(prompts):
            text: list[int] = []
            for block in decoder.generate(request, prompt.tokens, session.stop):
                text += block
                session.count(request, len(block))
            session.finish(trace, request, listener.rows, text)
        return session.summary(trace)
