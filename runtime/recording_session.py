"""What both kinds of recording share: settings, checks, hooks, counting, manifest, summary."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from policies.errors import UserError
from runtime.checkpoints import torch_dtype
from runtime.draft_model import DraftModel
from runtime.expert_layout import layout_of
from runtime.margins import NEAR_TIE, MarginLog, NearTie
from runtime.prompts import Prompt, check_prompts
from runtime.recorded_rows import RecordedRows
from runtime.routing_capture import RoutingCapture
from runtime.stopping import StopRule
from runtime.target_model import TargetModel
from runtime.truncation import ALL_TOKENS, Truncation
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
    truncation: Truncation = ALL_TOKENS
    notes: dict[str, str] = field(default_factory=dict)

    def check_length(self) -> None:
        """UserError for texts too short to measure, or so long that they loop."""
        if not 2 <= self.max_new_tokens <= LONGEST_GENERATION:
            raise UserError(
                f"max_new_tokens={self.max_new_tokens} is outside 2..{LONGEST_GENERATION}; "
                "record more prompts instead of longer texts"
            )


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

    @property
    def repetition(self) -> float:
        """Share of 4-grams that occurred earlier in the same text; looping text flatters caches."""
        return repeated_share(self.texts.values())


class RecordingSession:
    """One recording from its checks to its summary; `capture` must be entered while it runs."""

    def __init__(
        self,
        target: TargetModel,
        draft: DraftModel | None,
        prompts: Sequence[Prompt],
        settings: RecordingSettings,
        margins: MarginLog | None,
        progress: Progress | None,
    ) -> None:
        settings.check_length()
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
        self.capture = RoutingCapture(target.routers, lookahead, target.facts.routing)
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
                expert_bytes=layout_of(facts, torch_dtype(dtype)).expert_bytes,
            ),
            draft=None if self._draft is None else self._draft.facts.name,
            sampling=settings.sampling,
            gamma_max=settings.gamma,
            recorder=RECORDER,
            columns=columns + (NEXT_LAYER_COLUMNS if settings.next_layer else ()),
            notes={"dtype": dtype, "max_new_tokens": str(settings.max_new_tokens)}
            | settings.truncation.limits
            | settings.notes,
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
        """Also adds what was found along the way to the manifest, which closing then writes."""
        ties = self.margins.near_ties
        found = {"near_ties": f"{len(ties)} choices below {NEAR_TIE:g}"}
        if ties:
            found["near_ties"] += ": " + "; ".join(map(str, ties[:20]))
        found["repeated_4grams"] = f"{repeated_share(self._texts.values()):.3f}"
        if self._skipped:
            found["skipped"] = "requests that ended at once: " + ", ".join(map(str, self._skipped))
        trace.manifest = replace(trace.manifest, notes=trace.manifest.notes | found)
        return RecordingSummary(trace.path, self._texts, tuple(self._skipped), tuple(ties))


def repeated_share(texts: Iterable[Sequence[int]], length: int = 4) -> float:
    """Share of the `length`-grams that occurred before in their text, over all texts."""
    total = distinct = 0
    for text in texts:
        grams = [tuple(text[at : at + length]) for at in range(len(text) - length + 1)]
        total += len(grams)
        distinct += len(set(grams))
    return 1.0 - distinct / total if total else 0.0
