"""Dense recording of one request: a full window at every position of the text, one token committed each time.

The caches hold x_<t. The draft continues x_<=t with d_1..d_G, one target forward of (x_t, d_1..d_G) gives the
routing and the target's choice after every row, the first choice is committed, both caches are cut. Row j depends
on x_<=t and d_<=j alone, so the rows 0..gamma at t are exactly the pass that real decoding with any gamma <= G
would run there. See section 5 "Dense recording" of ARCHITECTURE.md.
"""

from collections.abc import Callable, Sequence

from runtime.draft_model import DraftModel
from runtime.margins import MarginLog
from runtime.recorded_rows import RecordedRows
from runtime.routing_capture import RoutingCapture
from runtime.stopping import StopRule
from runtime.target_model import TargetModel
from runtime.verify_rules import Choice, KeyedRule


class RollingContinuation:
    """The draft's next G tokens after a text that grows by one token at a time.

    Where the text grew by the very token that was drafted, the rest of the old continuation still holds: the
    draft is a function of the text. That saves most draft steps and gives the same tokens.
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


def record_request_densely(
    target: TargetModel,
    draft: DraftModel,
    rule: KeyedRule,
    capture: RoutingCapture,
    request: int,
    prompt: Sequence[int],
    gamma: int,
    stop: StopRule,
    rows: RecordedRows,
    margins: MarginLog,
    on_tokens: Callable[[int], None],
) -> list[int]:
    """Fill `rows` with one window of gamma + 1 rows per position; returns the new tokens."""
    capture.clear()
    logits = target.prefill(prompt)
    draft.prefill(prompt)
    first = rule.first(logits[-1], request, len(prompt))
    routing = capture.take()
    rows.add_prefill(prompt, routing)
    margins.add_prefill(request, len(prompt), first.margin, routing.margins)
    continuation = RollingContinuation(draft, rule, request, gamma)
    text = [*prompt, first.token]
    on_tokens(1)
    _, reason = stop.cut([], [first.token])
    while reason is None:
        start = len(text) - 1
        drafts = continuation.after(text)
        window = [text[-1], *(choice.token for choice in drafts)]
        capture.clear()
        choices, scores = rule.choose(target.forward(window), request, start + 1)
        routing = capture.take()
        rows.add_window(start, window, choices, routing)
        draft_margins = [choice.margin for choice in drafts]
        margins.add_window(request, start, 1, scores, draft_margins, routing.margins)
        target.cut(start + 1)
        _, reason = stop.cut(text[len(prompt) :], choices[:1])
        text.append(choices[0])
        on_tokens(1)
    return text[len(prompt) :]
