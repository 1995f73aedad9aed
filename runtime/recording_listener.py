"""Turns the passes of real speculative decoding into trace rows."""

from collections.abc import Sequence

from runtime.margins import MarginLog
from runtime.pass_listener import PassListener
from runtime.recorded_rows import RecordedRows
from runtime.routing_capture import Routing, RoutingCapture
from runtime.verify_rules import Verdict
from traces.rows import UNKNOWN_TOKEN


class RecordingListener(PassListener):
    """`rows` holds what the request now running has recorded so far."""

    def __init__(self, capture: RoutingCapture, router_weights: bool, margins: MarginLog) -> None:
        self._capture, self._router_weights, self._margins = capture, router_weights, margins
        self._request = 0
        self._draft_margins: list[float] = []
        self._window: tuple[int, list[int], Verdict, Routing] | None = None
        self.rows = RecordedRows(0, router_weights)

    def start_request(self, request: int, prompt: Sequence[int]) -> None:
        self._request = request
        self.rows = RecordedRows(request, self._router_weights)
        self._capture.clear()

    def after_prefill(self, prompt: Sequence[int], token: int, margin: float) -> None:
        routing = self._capture.take()
        self.rows.add_prefill(prompt, routing)
        self._margins.add_prefill(self._request, len(prompt), margin, routing.margins)

    def start_pass(self, last_token: int, gamma_max: int) -> int:
        self._draft_margins = []
        return gamma_max

    def draft_step(self, step: int, token: int, margin: float) -> None:
        self._draft_margins.append(margin)

    def before_verify(self, rows: Sequence[int]) -> None:
        self._capture.clear()

    def after_verify(self, start: int, rows: Sequence[int], verdict: Verdict) -> None:
        self._window = (start, list(rows), verdict, self._capture.take())

    def end_pass(self, accepted: int, committed: Sequence[int]) -> None:
        assert self._window is not None
        start, tokens, verdict, routing = self._window
        choices = list(verdict.choices)
        if len(committed) <= accepted:
            # The text ended inside the accepted block: what the target would have put after it is
            # not text.
            choices[len(committed) :] = [UNKNOWN_TOKEN] * (len(choices) - len(committed))
        self.rows.add_window(start, tokens, choices, routing)
        self._margins.add_window(
            self._request,
            start,
            len(committed),
            verdict.margins,
            self._draft_margins,
            routing.margins,
        )
