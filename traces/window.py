"""Window: what one pass over a trace verifies and commits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traces.rows import RowBatch


@dataclass(frozen=True)
class Window:
    """Rows 0..gamma of the pass that starts at position `start`; L layers, top-K experts.

    tokens int32 [gamma + 1]: inputs x_t, d_1..d_gamma; choices int32 [gamma + 1]: y_{t,0..gamma};
    accepted: drafts that match; committed: tokens committed, accepted + 1 unless the request ends
    inside (then both are cut to what was left); experts uint16 [gamma + 1, L, K]; weights float16
    likewise or None;
    next_layer uint16 [H, gamma + 1, L, K] or None;
    approximate: rejected drafts were not recorded, rows of the text stand in for them.
    """

    request: int
    start: int
    gamma: int
    tokens: NDArray[np.int32]
    choices: NDArray[np.int32]
    accepted: int
    committed: int
    experts: NDArray[np.uint16]
    weights: NDArray[np.float16] | None
    next_layer: NDArray[np.uint16] | None
    approximate: bool


def cut_window(
    rows: RowBatch, begin: int, gamma: int, accepted: int, committed: int, approximate: bool
) -> Window:
    """The window of rows begin..begin + gamma of `rows`, as views."""
    end = begin + gamma + 1
    return Window(
        request=int(rows.request[begin]),
        start=int(rows.start[begin]),
        gamma=gamma,
        tokens=rows.input_token[begin:end],
        choices=rows.target_choice[begin:end],
        accepted=accepted,
        committed=committed,
        experts=rows.experts[begin:end],
        weights=None if rows.router_weights is None else rows.router_weights[begin:end],
        next_layer=None if rows.next_layer is None else rows.next_layer[:, begin:end],
        approximate=approximate,
    )
