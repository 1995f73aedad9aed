"""Compare the passes of a dense trace with a real recording at one gamma, decision by decision."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from runtime.margins import NEAR_TIE, MarginLog, WindowMargins
from traces.reader import open_trace
from traces.replay import Replay, open_replay
from traces.rows import UNKNOWN_TOKEN
from traces.window import Window


@dataclass(frozen=True)
class Recording:
    """A trace on disk and the margins of its decisions."""

    replay: Replay
    margins: MarginLog

    @classmethod
    def open(cls, path: str | Path, margins: MarginLog) -> "Recording":
        """The recording in directory `path`, every hash checked."""
        return cls(open_replay(open_trace(path, verify=True)), margins)

    def windows(self, request: int, gamma: int) -> dict[int, Window]:
        """Passes of `request` at a fixed gamma, by start."""
        windows, start, end = {}, self.replay.first(request), self.replay.end(request)
        while start < end:
            windows[start] = self.replay.window(request, start, gamma)
            start += windows[start].committed
        return windows


@dataclass(frozen=True)
class Difference:
    """One decision that came out differently.

    kind: "choice" of the target, "draft" token, "routing" of one layer, or "window" (a pass that
    only one side has, or a length). margin: the smaller of both recordings', see `runtime.margins`;
    infinite for windows. consequence: an earlier difference of the request can be its cause.
    """

    gamma: int
    request: int
    start: int
    row: int
    layer: int | None
    kind: str
    margin: float
    consequence: bool = False

    @property
    def explained(self) -> bool:
        """Whether rounding can be the cause: a near tie, or the consequence of one."""
        return self.consequence or self.margin < NEAR_TIE

    def __str__(self) -> str:
        layer = "" if self.layer is None else f" layer {self.layer}"
        cause = ", after an earlier one" if self.consequence else ""
        return (
            f"gamma {self.gamma} request {self.request} start {self.start} row {self.row}{layer}: "
            f"{self.kind} differs, margin {self.margin:.1e}{cause}"
        )


def compare_request(
    dense: Recording, real: Recording, request: int, gamma: int
) -> Iterator[Difference]:
    """Differences in the order of decoding; those after the first are consequences."""
    seen = False
    for found in _differences(dense, real, request, gamma):
        yield Difference(**{**vars(found), "consequence": seen})
        seen = True


def _differences(
    dense: Recording, real: Recording, request: int, gamma: int
) -> Iterator[Difference]:
    if not np.array_equal(dense.replay.prefill(request), real.replay.prefill(request)):
        yield Difference(gamma, request, 0, 0, None, "window", float("inf"))
    ours, theirs = dense.windows(request, gamma), real.windows(request, gamma)
    for start in sorted(ours.keys() | theirs.keys()):
        if start not in ours or start not in theirs:
            yield Difference(gamma, request, start, 0, None, "window", float("inf"))
            continue
        margins = dense.margins.windows[request, start], real.margins.windows[request, start]
        yield from _window_differences(ours[start], theirs[start], margins)


def _window_differences(
    ours: Window, theirs: Window, margins: tuple[WindowMargins, WindowMargins]
) -> Iterator[Difference]:
    where = ours.gamma, ours.request, ours.start
    for row in range(ours.gamma + 1):
        if ours.tokens[row] != theirs.tokens[row]:
            # A row depends on the tokens before it: the rest of this window has nothing to compare.
            close = [part.draft[row - 1] for part in margins] if row else [float("inf")]
            yield Difference(*where, row, None, "draft", min(close))
            break
        # Experts as sets: two chosen experts of almost equal weight may swap places.
        same = np.sort(ours.experts[row], axis=-1) == np.sort(theirs.experts[row], axis=-1)
        for layer in np.flatnonzero(~same.all(axis=-1)).tolist():
            close = [float(part.router[row, layer]) for part in margins]
            yield Difference(*where, row, layer, "routing", min(close))
        choices = int(ours.choices[row]), int(theirs.choices[row])
        if UNKNOWN_TOKEN not in choices and choices[0] != choices[1]:
            yield Difference(*where, row, None, "choice", min(part.score[row] for part in margins))
    if ours.committed != theirs.committed:
        yield Difference(*where, 0, None, "window", float("inf"))
