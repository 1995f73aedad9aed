"""Record a trace: what the routers of a target choose while it decodes with a draft.

`record_dense` gives a trace that can be replayed at any gamma up to the recorded one; it runs one window per
token. `record_windowed` records real speculative decoding at one gamma, for models where that is too slow;
with gamma 0 it is plain decoding. Design section 5 "Traces".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from policies.errors import UserError
from runtime.dense_recording import record_request_densely
from runtime.draft_model import DraftModel
from runtime.margins import NEAR_TIE, MarginLog, NearTie
from runtime.prompts import Prompt, check_prompts
from runtime.recorded_rows import RecordedRows
from runtime.recording_listener import RecordingListener
from runtime.routing_capture import RoutingCapture
from runtime.speculative import SpeculativeDecoder
from runtime.stopping import StopRule
from runtime.target_model import TargetModel
from runtime.verify_rules import KeyedRule, make_rule
from traces.manifest import (
    MAX_LOOKAHEAD,
    NEXT_LAYER_COLUMNS,
    SCHEMA_VERSION,
    Kind,
    Manifest,
    ModelInfo,
    SamplingInfo,
)
from traces.writer import TraceWriter

RECORDER = "runtime.recorder 1"
ROWS_PER_PART = 4_096
LONGEST_GENERATION = 96  # small models loop after that, which flatters every cache

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class RecordingSettings:
    """What to record. `gamma`: drafts per window; `next_layer`: predict routing 1..3 layers ahead.

    `notes` go to the manifest as they are.
    """

    workload: str
    gamma: int
    sampling: SamplingInfo
    max_new_tokens: int = LONGEST_GENERATION
    next_layer: bool = False
    router_weights: bool = False
    rows_per_part: int = ROWS_PER_PART
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordingSummary:
    """Outcome of a recording. `texts`: new tokens by request, also of those left out of the trace.

    skipped: requests that ended with their first token, which have no window to record.
    """

    path: Path
    texts: dict[int, tuple[int, ...]]
    skipped: tuple[int, ...]
    near_ties: tuple[NearTie, ...]

    @property
    def committed(self) -> int:
        """New tokens of all requests."""
        return sum(len(text) for text in self.texts.values())


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
    """Write a dense trace to the new directory `out`; progress(request, tokens so far) after each token."""
    if settings.sampling.mode not in ("greedy", "keyed"):
        raise UserError(
            f"sampling.mode={settings.sampling.mode} depends on the window, so it cannot be recorded densely; "
            "use keyed or greedy, or kind=windowed"
        )
    if settings.gamma < 1:
        raise UserError(f"gamma={settings.gamma} must be at least 1 for a dense trace")
    session = _Session(target, draft, prompts, settings, margins, progress)
    rule = make_rule(settings.sampling, target.facts.vocabulary, target.device)
    assert isinstance(rule, KeyedRule)
    with (
        session.capture,
        writer(Path(out), session.manifest("dense"), settings.rows_per_part) as trace,
    ):
        for request, prompt in enumerate(prompts):
            rows = RecordedRows(request, settings.router_weights)
            text = record_request_densely(
                target,
                draft,
                rule,
                session.capture,
                request,
                prompt.tokens,
                settings.gamma,
                session.stop,
                rows,
                session.margins,
                lambda count, request=request: session.count(request, count),  # type: ignore[misc]
            )
            session.finish(trace, request, rows, text)
        return session.summary(trace)


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
    """Write a windowed trace of real decoding to the new directory `out`; gamma 0 needs no draft."""
    session = _Session(target, draft, prompts, settings, margins, progress)
    rule = make_rule(settings.sampling, target.facts.vocabulary, target.device)
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


class _Session:
    """What both kinds of recording share: checks, hooks, counting, the manifest."""

    def __init__(
        self,
        target: TargetModel,
        draft: DraftModel | None,
        prompts: Sequence[Prompt],
        settings: RecordingSettings,
        margins: MarginLog | None,
        progress: Progress | None,
    ) -> None:
        if not 2 <= settings.max_new_tokens <= LONGEST_GENERATION:
            raise UserError(
                f"max_new_tokens={settings.max_new_tokens} is outside 2..{LONGEST_GENERATION}; record more prompts "
                "instead of longer texts"
            )
        models = [target] if draft is None else [target, draft]
        positions = min(model.facts.max_positions for model in models)
        # The last window may reach gamma tokens past the end of the text.
        check_prompts(
            prompts, target.facts.vocabulary, settings.max_new_tokens + settings.gamma, positions
        )
        lookahead = MAX_LOOKAHEAD if settings.next_layer else 0
        self._target, self._draft, self._settings = target, draft, settings
        self._progress = progress
        self._texts: dict[int, tuple[int, ...]] = {}
        self._skipped: list[int] = []
        self._tokens = 0
        self.capture = RoutingCapture(target.routers, lookahead)
        self.margins = MarginLog() if margins is None else margins
        self.stop = StopRule(settings.max_new_tokens, target.facts.end_tokens)

    def manifest(self, kind: Kind) -> Manifest:
        facts, settings = self._target.facts, self._settings
        dtype = str(next(self._target.module.parameters()).dtype).removeprefix("torch.")
        columns = ("router_weights",) if settings.router_weights else ()
        return Manifest(
            schema_version=SCHEMA_VERSION,
            kind=kind,
            workload=settings.workload,
            model=ModelInfo(
                name=facts.name,
                layers=len(facts.moe_layers),
                experts=facts.experts,
                top_k=facts.top_k,
                expert_bytes=facts.expert_bytes(dtype),
            ),
            draft=None if self._draft is None else self._draft.facts.name,
            sampling=settings.sampling,
            gamma_max=settings.gamma,
            recorder=RECORDER,
            columns=columns + (NEXT_LAYER_COLUMNS if settings.next_layer else ()),
            notes={"dtype": dtype, "max_new_tokens": str(settings.max_new_tokens)} | settings.notes,
        )

    def count(self, request: int, tokens: int) -> None:
        self._tokens += tokens
        if self._progress is not None:
            self._progress(request, self._tokens)

    def finish(
        self, trace: TraceWriter, request: int, rows: RecordedRows, text: Sequence[int]
    ) -> None:
        self._texts[request] = tuple(text)
        if rows.windows:
            trace.append(rows.batch())
        else:
            self._skipped.append(request)

    def summary(self, trace: TraceWriter) -> RecordingSummary:
        """Also puts what was found along the way into the manifest, which closing the trace writes."""
        ties = self.margins.near_ties
        found = {"near_ties": f"{len(ties)} choices below {NEAR_TIE:g}"}
        if ties:
            found["near_ties"] += ": " + "; ".join(map(str, ties[:20]))
        if self._skipped:
            found["skipped"] = "requests that ended at once: " + ", ".join(map(str, self._skipped))
        trace.manifest = replace(trace.manifest, notes=trace.manifest.notes | found)
        return RecordingSummary(trace.path, self._texts, tuple(self._skipped), tuple(ties))
