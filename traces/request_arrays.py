"""RequestArrays: one whole request of a replay as plain arrays, for loops in compiled code."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traces.rows import RowBatch

NO_LIMIT = np.iinfo(np.int32).max


class RequestArrays(NamedTuple):
    """Rule of a pass at start s with a wish of gamma, t = s - first, in all kinds of trace:

        gamma = min(gamma, gamma_limit[t]);  accepted = min(longest[t], gamma, end - s)
        committed = min(accepted + 1, commit_limit[t]);  rows begin[t] .. begin[t] + gamma

    begin, longest, gamma_limit, commit_limit int64 [end - first]; begin is -1 where no pass can
    start. Decode rows: tokens and choices (of the target) int32 [n]; experts uint16 [n, L, K];
    weights float16 [n, L, K] or None; next_layer uint16 [H, n, L, K] or None. prefill uint16
    [P, L, K] or None.
    """

    first: int
    begin: NDArray[np.int64]
    longest: NDArray[np.int64]
    gamma_limit: NDArray[np.int64]
    commit_limit: NDArray[np.int64]
    tokens: NDArray[np.int32]
    choices: NDArray[np.int32]
    experts: NDArray[np.uint16]
    weights: NDArray[np.float16] | None
    next_layer: NDArray[np.uint16] | None
    prefill: NDArray[np.uint16] | None


def request_arrays(
    first: int,
    begin: NDArray[np.int64],
    longest: NDArray[np.int64],
    gamma_limit: NDArray[np.int64],
    commit_limit: NDArray[np.int64],
    rows: RowBatch,
    prefill: NDArray[np.uint16] | None,
) -> RequestArrays:
    """Packs what a replay knows of a request with the columns of its decode `rows`."""
    return RequestArrays(
        first, begin, longest, gamma_limit, commit_limit, rows.input_token, rows.target_choice,
        rows.experts, rows.router_weights, rows.next_layer, prefill,
    )  # fmt: skip
