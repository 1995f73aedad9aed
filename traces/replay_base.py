"""What the three kinds of replay share: request lookup, prefill, checks of start and gamma."""

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
