"""Dense recording: a full window at every position of the text, one token committed each time.

The caches hold x_<t. The draft continues x_<=t with d_1..d_G, one target forward of (x_t, d_1..d_G)
gives the routing and the target's choice after every row, the first choice is committed, both
caches are cut. Row j depends on x_<=t and d_<=j alone, so the rows 0..gamma at t are exactly the
pass that real decoding with any gamma <= G would run there. More in ARCHITECTURE.md.
"""

from collections.abc import Iterator, Sequence

from runtime.draft_model import DraftModel
from runtime.margins import MarginLog
from runtime.recorded_rows import RecordedRows
from runtime.routing_capture import RoutingCapture
from runtime.stopping import StopRule
from runtime.target_model import TargetModel
from runtime.verify_rules import Choice, KeyedRule


class RollingContinuation:
    """The draft's next G tokens after a text that grows by one token at a time.

    Where the text grew by the very token that was drafted, the rest of the old continuation still
    holds: the draft is a function of the text. That saves most draft steps and gives the same
    tokens.
    """

    def __init__(self, draft: DraftModel, rule: KeyedRule, request: int, gamma: int) -> None:
        self._draft, self._rule, self._request, self._gamma = draft, rule, request, gamma
        self._choices: list[Choice] = []

    def after(self, text: Sequence[int]) -> list[Choice]:
        """d_1..d_G after `text`, which must be one token longer than in the last call."""
        if self._choices and self._choices[0].token == text[-1]:
            del self._choices[0]
        else:
            self._choices = []
            self._draft.forget_after(len(text) - 1)
        while len(self._choices) < self._gamma:
            logits = self._draft.next_logits([*text, *(choice.token for choice in self._choices)])
            position = len(text) + len(self._choices)
            self._choices.append(self._rule.propose(logits, self._request, position))
        return list(self._choices)


class DenseRecording:
    """Records requests with a window of gamma + 1 rows at every position."""

    def __init__(
        self,
        target: TargetModel,
        draft: DraftModel,
        rule: KeyedRule,
        gamma: int,
        capture: RoutingCapture,
        margins: MarginLog,
    ) -> None:
        self._target, self._draft, self._rule, self._gamma = target, draft, rule, gamma
        self._capture, self._margins = capture, margins

    def tokens(
        self, request: int, prompt: Sequence[int], stop: StopRule, rows: RecordedRows
    ) -> Iterator[int]:
        """Yield the new tokens one by one while filling `rows`."""
        first = self._prefill(request, prompt, rows)
        continuation = RollingContinuation(self._draft, self._rule, request, self._gamma)
        text = [*prompt, first]
        _, reason = stop.cut([], [first])
        yield first
        while reason is None:
            token = self._window(request, text, continuation.after(text), rows)
            _, reason = stop.cut(text[len(prompt) :], [token])
            text.append(token)
            yield token

    def _prefill(self, request: int, prompt: Sequence[int], rows: RecordedRows) -> int:
        self._capture.clear()
        logits = self._target.prefill(prompt)
        self._draft.prefill(prompt)
        first = self._rule.first(logits[-1], request, len(prompt))
        routing = self._capture.take()
        rows.add_prefill(prompt, routing)
        self._margins.add_prefill(request, len(prompt), first.margin, routing.margins)
        return first.token

    def _window(
        self, request: int, text: Sequence[int], drafts: list[Choice], rows: RecordedRows
    ) -> int:
        """Record the window after `text`; the token that follows `text`."""
        start = len(text) - 1
        window = [text[-1], *(choice.token for choice in drafts)]
        self._capture.clear()
        choices, scores = self._rule.choose(self._target.forward(window), request, start + 1)
        routing = self._capture.take()
        rows.add_window(start, window, choices, routing)
        draft_margins = [choice.margin for choice in drafts]
        self._margins.add_window(request, start, 1, scores, draft_margins, routing.margins)
        self._target.cut(start + 1)
        return choices[0]
