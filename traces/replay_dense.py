"""Replay of a dense trace: exact for every gamma up to gamma_max, whatever each pass chooses."""

import numpy as np

from traces.acceptance import leading_matches
from traces.reader import Trace
from traces.replay_base import ReplayOfKind
from traces.request_arrays import NO_LIMIT, RequestArrays, request_arrays
from traces.window import Window, cut_window


class DenseReplay(ReplayOfKind):
    """a_t = max{j : d_i = y_{t,i-1} for all i <= j}; a pass accepts min(a_t, gamma).

    At the end of a request both accepted and committed are cut to the tokens that are left, as in a
    recording at that gamma, which stops there.
    """

    kind = "dense"
    approximate = False

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace, trace.manifest.gamma_max)
        self._rows_per_start = trace.manifest.rows_per_start
        self._longest: list[int] = []

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

    def _open(self, request: int) -> tuple[int, int]:
        rows = self._cursor.decode(request)
        self._longest = leading_matches(rows.match.reshape(-1, self._rows_per_start)).tolist()
        first = int(rows.start[0])
        return first, first + len(self._longest)
