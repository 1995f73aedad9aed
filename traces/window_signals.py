"""What a verify window says about each expert: its count, the bit of the window, the bit of one
row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traces.replay import Replay


@dataclass(frozen=True)
class WindowSignals:
    """P passes of full windows, C = layers x experts cells. count int64 [P, C]: activation counts;
    bit: count > 0; row: activation by the last accepted row alone, all that decoding without
    speculation sees; request int64 [P]; experts uint16 [P, rows, L, K]."""

    count: NDArray[np.int64]
    row: NDArray[np.int64]
    request: NDArray[np.int64]
    experts: NDArray[np.uint16]
    number: int

    @property
    def bit(self) -> NDArray[np.int64]:
        """Whether the window activates the expert."""
        return (self.count > 0).astype(np.int64)


def window_signals(replay: Replay, gamma: int, requests: int | None = None) -> WindowSignals:
    """Signals of all passes at `gamma`; windows that the end of a text cuts are left out."""
    kept, last, request = [], [], []
    for number in replay.request_ids[:requests]:
        start, end = replay.first(number), replay.end(number)
        while start < end:
            window = replay.window(number, start, gamma)
            start += window.committed
            if window.gamma == gamma:
                kept.append(window.experts)
                last.append(window.accepted)
                request.append(number)
    experts = np.stack(kept)
    number = replay.model.experts
    rows = experts[np.arange(len(experts)), last]
    return WindowSignals(
        counts_of(experts, number), counts_of(rows[:, None], number),
        np.array(request, np.int64), experts, number,
    )  # fmt: skip


def counts_of(experts: NDArray[np.uint16], number: int) -> NDArray[np.int64]:
    """int64 [P, L * number]: rows of each window that activate an expert; [P, rows, L, K]."""
    passes, _, layers, _ = experts.shape
    cell = np.arange(layers)[:, None] * number + experts.astype(np.int64)
    index = np.arange(passes)[:, None, None, None] * (layers * number) + cell
    counts = np.bincount(index.ravel(), minlength=passes * layers * number)
    return counts.reshape(passes, layers * number)


def shuffled_rows(experts: NDArray[np.uint16], seed: int) -> NDArray[np.uint16]:
    """The rows of all windows in random order, cut into windows again: popularity without
    locality."""
    passes, rows = experts.shape[:2]
    order = np.random.default_rng(seed).permutation(passes * rows)
    flat = experts.reshape(passes * rows, *experts.shape[2:])
    mixed: NDArray[np.uint16] = flat[order].reshape(experts.shape)
    return mixed
