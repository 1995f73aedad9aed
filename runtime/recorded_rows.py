"""Collects the trace rows of one request while it is being decoded."""

from collections.abc import Sequence

import numpy as np

from runtime.routing_capture import Routing
from traces.rows import DECODE, PREFILL, UNKNOWN_TOKEN, RowBatch, build_rows


class RecordedRows:
    """Prefill rows first, then one window after the other; `batch` turns them into arrays."""

    def __init__(self, request: int, router_weights: bool) -> None:
        self._request, self._router_weights = request, router_weights
        self._phase: list[int] = []
        self._start: list[int] = []
        self._row: list[int] = []
        self._token: list[int] = []
        self._choice: list[int] = []
        self._match: list[bool] = []
        self._routing: list[Routing] = []
        self.windows = 0

    def add_prefill(self, prompt: Sequence[int], routing: Routing) -> None:
        """One row per token of the prompt; what the target would put after each is not recorded."""
        unknown = [UNKNOWN_TOKEN] * len(prompt)
        self._add(PREFILL, 0, prompt, unknown, [False] * len(prompt), routing)

    def add_window(
        self, start: int, tokens: Sequence[int], choices: Sequence[int], routing: Routing
    ) -> None:
        """The window (x_t, d_1..d_gamma) at t = start with the target's choice after each row, -1
        where unknown.
        """
        match = [draft == choice for draft, choice in zip(tokens[1:], choices[:-1], strict=True)]
        self._add(DECODE, start, tokens, choices, [*match, False], routing)
        self.windows += 1

    def batch(self) -> RowBatch:
        """All rows so far; router weights only if asked for, next_layer if it was captured."""
        routing = self._routing
        lookahead = [part.next_layer for part in routing if part.next_layer is not None]
        weights = (
            np.concatenate([part.weights for part in routing]) if self._router_weights else None
        )
        return build_rows(
            request=self._request,
            phase=self._phase,
            start=self._start,
            row=self._row,
            input_token=self._token,
            target_choice=self._choice,
            match=self._match,
            experts=np.concatenate([part.experts for part in routing]),
            router_weights=weights,
            next_layer=np.concatenate(lookahead, axis=1) if lookahead else None,
        )

    def _add(
        self,
        phase: int,
        start: int,
        tokens: Sequence[int],
        choices: Sequence[int],
        match: Sequence[bool],
        routing: Routing,
    ) -> None:
        self._phase += [phase] * len(tokens)
        self._start += [start] * len(tokens)
        self._row += range(len(tokens))
        self._token += tokens
        self._choice += choices
        self._match += match
        self._routing.append(routing)
