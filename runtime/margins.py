"""By how much each recorded decision was made: evidence for judging differences between two
recordings.

Two forwards of the same tokens in windows of different sizes round differently, about 1e-6 in fp32.
A decision whose margin is not far above that can flip; any other difference is an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NEAR_TIE = 1e-4


@dataclass(frozen=True)
class NearTie:
    """A choice of the target whose score beat the runner-up by less than NEAR_TIE. `position` is
    its place.
    """

    request: int
    position: int
    margin: float

    def __str__(self) -> str:
        return f"request {self.request} position {self.position} margin {self.margin:.1e}"


@dataclass(frozen=True)
class WindowMargins:
    """score [gamma + 1]: target's choice after each row; draft [gamma]: each proposal; router
    float32 [gamma + 1, L].
    """

    score: tuple[float, ...]
    draft: tuple[float, ...]
    router: NDArray[np.float32]


class MarginLog:
    """Margins of all windows of a recording, by (request, start); `first` by request; near ties of
    committed text.
    """

    def __init__(self, keep_windows: bool = False) -> None:
        self._keep_windows = keep_windows
        self.windows: dict[tuple[int, int], WindowMargins] = {}
        self.prefill: dict[int, NDArray[np.float32]] = {}
        self.first: dict[int, float] = {}
        self.near_ties: list[NearTie] = []

    def add_prefill(
        self, request: int, position: int, score: float, router: NDArray[np.float32]
    ) -> None:
        """The first token after the prompt, chosen for `position`, and the routing of the prompt
        [rows, L].
        """
        self._note(request, position, score)
        if self._keep_windows:
            self.first[request] = score
            self.prefill[request] = router

    def add_window(
        self,
        request: int,
        start: int,
        committed: int,
        score: Sequence[float],
        draft: Sequence[float],
        router: NDArray[np.float32],
    ) -> None:
        """A window at `start` of which the first `committed` choices became text."""
        for row in range(committed):
            self._note(request, start + 1 + row, score[row])
        if self._keep_windows:
            self.windows[request, start] = WindowMargins(tuple(score), tuple(draft), router)

    def _note(self, request: int, position: int, margin: float) -> None:
        if margin < NEAR_TIE:
            self.near_ties.append(NearTie(request, position, margin))
