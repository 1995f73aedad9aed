"""Replay: play passes on a trace with any window that its kind allows, exactly or approximately."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.acceptance import Acceptance
from traces.manifest import ModelInfo
from traces.reader import Trace
from traces.replay_dense import DenseReplay
from traces.replay_text import TextReplay
from traces.replay_windowed import WindowedReplay
from traces.request_arrays import RequestArrays
from traces.window import Window


class Replay(Protocol):
    """Passes of a trace. A request runs from first() until the start reaches end():
    start = first(r); while start < end(r): w = window(r, start, gamma); start += w.committed.

    `gamma_limit`: largest gamma that window() takes; `fixed_gamma`: the only one, or None.
    """

    @property
    def model(self) -> ModelInfo: ...
    @property
    def kind(self) -> str: ...
    @property
    def gamma_limit(self) -> int: ...
    @property
    def fixed_gamma(self) -> int | None: ...
    @property
    def approximate(self) -> bool: ...
    @property
    def columns(self) -> frozenset[str]: ...
    @property
    def request_ids(self) -> tuple[int, ...]: ...

    def prompt(self, request: int) -> NDArray[np.int32]:
        """Tokens of the prefill rows, int32 [P]; P is 0 where the trace holds no prefill."""
        ...

    def prompt_length(self, request: int) -> int:
        """P, known without reading the request."""
        ...

    def prefill(self, request: int) -> NDArray[np.uint16] | None:
        """Experts of the prefill rows, uint16 [P, L, K], or None."""
        ...

    def first(self, request: int) -> int:
        """Start of the first pass."""
        ...

    def end(self, request: int) -> int:
        """The start at which the request is finished; end - first tokens are committed in all."""
        ...

    def window(self, request: int, start: int, gamma: int) -> Window:
        """The pass at `start` with `gamma` drafts; UserError where the trace cannot tell."""
        ...

    def arrays(self, request: int) -> RequestArrays:
        """The whole request, with the rule by which window() cuts its passes."""
        ...


def open_replay(trace: Trace, acceptance: Acceptance | None = None, seed: int = 0) -> Replay:
    """The replay that fits the kind of `trace`.

    `acceptance` (text only, needed there): probability that a draft is accepted, or a list of
    P(d_i accepted | those before it accepted) whose last entry repeats; `seed` keys its draws.
    """
    kind = trace.manifest.kind
    if kind == "text":
        if acceptance is None:
            raise UserError(
                f"{trace.path}: a text trace has no drafts, so windows need acceptance=, e.g. "
                "acceptance=0.75 (one probability) or acceptance=[0.8,0.7,0.6] (by position)"
            )
        return TextReplay(trace, acceptance, seed)
    if acceptance is not None:
        raise UserError(
            f"{trace.path}: a {kind} trace has its own recorded drafts; leave acceptance= out"
        )
    return DenseReplay(trace) if kind == "dense" else WindowedReplay(trace)


def passes(replay: Replay, gamma: int) -> Iterator[Window]:
    """All passes of all requests, in order, with a fixed `gamma`."""
    for request in replay.request_ids:
        start, end = replay.first(request), replay.end(request)
        while start < end:
            window = replay.window(request, start, gamma)
            yield window
            start += window.committed
