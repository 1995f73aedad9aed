"""Replay of a windowed trace: the recorded passes, no other gamma and no other starts."""

import numpy as np

from policies.errors import UserError
from traces.acceptance import leading_matches
from traces.reader import Trace
from traces.replay_base import ReplayOfKind
from traces.request_arrays import NO_LIMIT, RequestArrays, request_arrays
from traces.rows import UNKNOWN_TOKEN
from traces.window import Window, cut_window


class WindowedReplay(ReplayOfKind):
    """A pass commits its accepted drafts and the target's choice after them unless that is -1."""

    kind = "windowed"
    approximate = False

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace, trace.manifest.gamma_max)
        self.fixed_gamma = trace.manifest.gamma_max
        self._path = trace.path
        self._window_at: dict[int, int] = {}
        self._accepted: list[int] = []
        self._committed: list[int] = []

    def window(self, request: int, start: int, gamma: int) -> Window:
        """See Replay."""
        if gamma != self.gamma_limit:
            raise UserError(
                f"{self._path}: recorded with gamma={self.gamma_limit}, cannot give gamma={gamma}; "
                f"use gamma={self.gamma_limit} or a dense trace"
            )
        first, end = self._move_to(request)
        self._cursor.check_start(request, start, first, end)
        if start not in self._window_at:
            raise UserError(
                f"{self._path}: request {request} has no pass at start {start}; a windowed "
                "trace can only be followed pass by pass"
            )
        index = self._window_at[start]
        return cut_window(
            self._cursor.decode(request),
            begin=index * (gamma + 1),
            gamma=gamma,
            accepted=self._accepted[index],
            committed=self._committed[index],
            approximate=False,
        )

    def arrays(self, request: int) -> RequestArrays:
        """See Replay."""
        first, end = self._move_to(request)
        offsets = np.array(list(self._window_at), np.int64) - first
        begin, longest, commits = np.full((3, end - first), -1, np.int64)
        begin[offsets] = np.arange(len(offsets)) * (self.gamma_limit + 1)
        longest[offsets] = self._accepted
        commits[offsets] = self._committed
        return request_arrays(
            first,
            begin,
            longest,
            gamma_limit=np.full(end - first, NO_LIMIT, np.int64),
            commit_limit=commits,
            rows=self._cursor.decode(request),
            prefill=self._cursor.prefill_experts(request),
        )

    def _open(self, request: int) -> tuple[int, int]:
        rows, width = self._cursor.decode(request), self.gamma_limit + 1
        accepted = leading_matches(rows.match.reshape(-1, width))
        last_choice = rows.target_choice.reshape(-1, width)[np.arange(len(accepted)), accepted]
        committed = accepted + (last_choice != UNKNOWN_TOKEN)
        starts = rows.start[::width].tolist()
        self._window_at = {start: index for index, start in enumerate(starts)}
        self._accepted, self._committed = accepted.tolist(), committed.tolist()
        return starts[0], starts[-1] + self._committed[-1]
