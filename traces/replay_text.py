"""Replay of a text trace: windows of consecutive text rows, drawn acceptance, approximate."""

import numpy as np

from traces.acceptance import Acceptance, acceptance_profile, leading_draws, uniform_draws
from traces.reader import Trace
from traces.replay_base import ReplayOfKind
from traces.request_arrays import RequestArrays, request_arrays
from traces.window import Window, cut_window


class TextReplay(ReplayOfKind):
    """The window at t holds the text rows t..t + gamma, fewer where the text ends.

    Draft i is accepted if the draw of text position t + i is below its probability and all before
    it were. A draw depends on (seed, request, position) only. A rejected draft's experts were never
    recorded; the row of the token that the text has instead stands in, so the union of experts of a
    window is a lower bound.
    """

    kind = "text"
    approximate = True

    def __init__(self, trace: Trace, acceptance: Acceptance, seed: int) -> None:
        super().__init__(trace, GAMMA_LIMIT)
        self._seed = seed
        self._profile = acceptance_profile(acceptance, GAMMA_LIMIT).tolist()
        self._draws: list[float] = []

    def window(self, request: int, start: int, gamma: int) -> Window:
        """See Replay. The window's own gamma is smaller than asked where the text ends inside."""
        self._cursor.check_gamma(gamma, self.gamma_limit)
        first, end = self._move_to(request)
        self._cursor.check_start(request, start, first, end)
        begin = start - first
        gamma = min(gamma, end - start - 1)
        accepted = 0
        while accepted < gamma and self._draws[begin + accepted + 1] < self._profile[accepted]:
            accepted += 1
        return cut_window(
            self._cursor.decode(request),
            begin=begin,
            gamma=gamma,
            accepted=accepted,
            committed=accepted + 1,
            approximate=True,
        )

    def arrays(self, request: int) -> RequestArrays:
        """See Replay."""
        first, end = self._move_to(request)
        starts = np.arange(end - first, dtype=np.int64)
        return request_arrays(
            first,
            begin=starts,
            longest=leading_draws(np.array(self._draws), np.array(self._profile)),
            gamma_limit=end - first - starts - 1,
            commit_limit=end - first - starts,
            rows=self._cursor.decode(request),
            prefill=self._cursor.prefill_experts(request),
        )

    def _open(self, request: int) -> tuple[int, int]:
        starts = self._cursor.decode(request).start.astype(np.int64)
        self._draws = uniform_draws(self._seed, request, starts).tolist()
        return int(starts[0]), int(starts[-1]) + 1


GAMMA_LIMIT = 64  # no recording bounds it; larger windows than this are a mistake
