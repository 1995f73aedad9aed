"""Replay of a text trace: windows of consecutive text rows, drawn acceptance, approximate."""

import numpy as np
from numpy.typing import NDArray

from traces.acceptance import Acceptance, acceptance_profile, leading_draws, uniform_draws
from traces.manifest import ModelInfo
from traces.reader import Trace
from traces.replay_base import RequestCursor
from traces.request_arrays import RequestArrays, request_arrays
from traces.window import Window, cut_window


class TextReplay:
    """The window at t holds the text rows t..t + gamma, fewer where the text ends.

    Draft i is accepted if the draw of text position t + i is below its probability and all before
    it were. A draw depends on (seed, request, position) only. A rejected draft's experts were never
    recorded; the row of the token that the text has instead stands in, so the union of experts of a
    window is a lower bound.
    """

    kind = "text"
    approximate = True
    fixed_gamma: int | None = None

    def __init__(self, trace: Trace, acceptance: Acceptance, seed: int) -> None:
        self._cursor = RequestCursor(trace)
        self.model: ModelInfo = self._cursor.model
        self.columns = self._cursor.columns
        self.request_ids = self._cursor.ids
        self.gamma_limit = GAMMA_LIMIT
        self._seed = seed
        self._profile = acceptance_profile(acceptance, GAMMA_LIMIT).tolist()
        self._draws: list[float] = []
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

    def _move_to(self, request: int) -> tuple[int, int]:
        if request != self._request:
            starts = self._cursor.decode(request).start.astype(np.int64)
            self._draws = uniform_draws(self._seed, request, starts).tolist()
            self._bounds = (int(starts[0]), int(starts[-1]) + 1)
            self._request = request
        return self._bounds


GAMMA_LIMIT = 64  # no recording bounds it; larger windows than this are a mistake
