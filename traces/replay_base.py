"""What the three kinds of replay share: request lookup, prefill, checks of start and gamma."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.manifest import ModelInfo
from traces.reader import Trace
from traces.requests import RequestRows
from traces.rows import RowBatch


class RequestCursor:
    """The current request of a trace, its rows split into prefill and decode."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._requests = RequestRows(trace)
        self._current: int | None = None
        self._prefill: RowBatch | None = None
        self._decode: RowBatch | None = None

    @property
    def ids(self) -> tuple[int, ...]:
        """All request numbers, ascending."""
        return self._requests.ids

    @property
    def model(self) -> ModelInfo:
        """Shape of the recorded target."""
        return self.trace.manifest.model

    @property
    def columns(self) -> frozenset[str]:
        """The optional columns present."""
        return frozenset(self.trace.manifest.columns)

    def _move_to(self, request: int) -> None:
        if request != self._current:
            self._prefill, self._decode = self._requests.split(request)
            self._current = request

    def prefill(self, request: int) -> RowBatch:
        """Prefill rows of `request`, maybe none."""
        self._move_to(request)
        assert self._prefill is not None
        return self._prefill

    def decode(self, request: int) -> RowBatch:
        """Decode rows of `request`."""
        self._move_to(request)
        assert self._decode is not None
        return self._decode

    def prompt(self, request: int) -> NDArray[np.int32]:
        """Prompt tokens, int32 [P]."""
        return self.prefill(request).input_token

    def prompt_length(self, request: int) -> int:
        """P, without the tokens."""
        return self._requests.prefill_rows(request)

    def prefill_experts(self, request: int) -> NDArray[np.uint16] | None:
        """Experts of the prompt, uint16 [P, L, K], or None where the trace holds no prefill."""
        rows = self.prefill(request)
        return rows.experts if len(rows) else None

    def check_start(self, request: int, start: int, first: int, end: int) -> None:
        """UserError unless a pass can begin at `start`."""
        if not first <= start < end:
            raise UserError(
                f"{self.trace.path}: request {request} has starts {first}..{end - 1}, not {start}"
            )

    def check_gamma(self, gamma: int, limit: int) -> None:
        """UserError unless 0 <= gamma <= limit."""
        if not 0 <= gamma <= limit:
            raise UserError(
                f"{self.trace.path}: gamma {gamma} is outside 0..{limit}; lower it, "
                "or record again with a larger gamma_max"
            )


class ReplayOfKind(ABC):
    """The part of Replay that does not depend on the kind of trace. A kind says what it works out
    when a request becomes the current one, and how a pass is cut."""

    fixed_gamma: int | None = None

    def __init__(self, trace: Trace, gamma_limit: int) -> None:
        self._cursor = RequestCursor(trace)
        self.model: ModelInfo = self._cursor.model
        self.columns = self._cursor.columns
        self.request_ids = self._cursor.ids
        self.gamma_limit = gamma_limit
        self._request: int | None = None
        self._bounds = (0, 0)

    @abstractmethod
    def _open(self, request: int) -> tuple[int, int]:
        """Work out what passes of `request` need; returns (first, end)."""

    def _move_to(self, request: int) -> tuple[int, int]:
        """(first, end) of `request`, which becomes the current one."""
        if request != self._request:
            self._bounds = self._open(request)
            self._request = request
        return self._bounds

    def prompt(self, request: int) -> NDArray[np.int32]:
        """See Replay."""
        return self._cursor.prompt(request)

    def prompt_length(self, request: int) -> int:
        """See Replay."""
        return self._cursor.prompt_length(request)

    def prefill(self, request: int) -> NDArray[np.uint16] | None:
        """See Replay."""
        return self._cursor.prefill_experts(request)

    def first(self, request: int) -> int:
        """See Replay."""
        return self._move_to(request)[0]

    def end(self, request: int) -> int:
        """See Replay."""
        return self._move_to(request)[1]
