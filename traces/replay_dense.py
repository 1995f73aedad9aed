"""Replay of a dense trace: exact for every gamma up to gamma_max, whatever each pass chooses."""

import numpy as np
from numpy.typing import NDArray

from traces.acceptance import leading_matches
from traces.manifest import ModelInfo
from traces.reader import Trace
from traces.replay_base import RequestCursor
from traces.request_arrays import NO_LIMIT, RequestArrays, request_arrays
from traces.window import Window, cut_window


class DenseReplay:
    """a_t = max{j : d_i = y_{t,i-1} for all i <= j}; a pass accepts min(a_t, gamma).

    At the end of a request both accepted and committed are cut to the tokens that are left, as in a
    recording at that gamma, which stops there.
    """

    kind = "dense"
    approximate = False
    fixed_gamma: int | None = None

    def __init__(self, trace: Trace) -> None:
        self._cursor = RequestCursor(trace)
        self.model: ModelInfo = self._cursor.model
        self.columns = self._cursor.columns
        self.request_ids = self._cursor.ids
        self.gamma_limit = trace.manifest.gamma_max
        self._rows_per_start = trace.manifest.rows_per_start
        self._longest: list[int] = []
        self._request: int | None = None
        self._bounds = (0, 0)

    def prompt(self, request: int) -> NDArray[np.int32]:
        """See Replay."""
        return self._cursor.prompt(request)

    def prefill(self, request: int) -> NDArray[np.uint16] | None:
        """See Replay."""
        return self._cursor.prefill_experts(request)

    def first(self, request: int) -> int:
        """See Replay."""
        return self._move_to(request)[0]

    def end(self, request: int) -> int:
        """See Replay."""
        return self._move_to(request)[1]

    def window(self, request: int, start: int, gamma: int) -> Window:
        """See Replay."""
        self._cursor.check_gamma(gamma, self.gamma_limit)
        first, end = self._move_to(request)
        self._cursor.check_start(request, start, first, end)
        accepted = min(self._longest[start - first], gamma, end - start)
        return cut_window(
            self._cursor.decode(request),
            begin=(start - first) * self._rows_per_start,
            gamma=gamma,
            accepted=accepted,
            committed=min(accepted + 1, end - start),
            approximate=False,
        )

    def arrays(self, request: int) -> RequestArrays:
        """See Replay."""
        first, end = self._move_to(request)
        starts = np.arange(end - first, dtype=np.int64)
        return request_arrays(
            first,
            begin=starts * self._rows_per_start,
            longest=np.array(self._longest, np.int64),
            gamma_limit=np.full(len(starts), NO_LIMIT, np.int64),
            commit_limit=end - first - starts,
            rows=self._cursor.decode(request),
            prefill=self._cursor.prefill_experts(request),
        )

    def _move_to(self, request: int) -> tuple[int, int]:
        if request != self._request:
            rows = self._cursor.decode(request)
            self._longest = leading_matches(rows.match.reshape(-1, self._rows_per_start)).tolist()
            first = int(rows.start[0])
            self._bounds = (first, first + len(self._longest))
            self._request = request
        return self._bounds
