"""The rows of the committed text: the routing that plain decoding would see, one row per token."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traces.acceptance import leading_matches
from traces.manifest import Manifest
from traces.rows import DECODE, UNKNOWN_TOKEN, RowBatch


@dataclass(frozen=True)
class TextRows:
    """request int32 [n], token int32 [n] (input of the row), experts uint16 [n, L, K]; decode."""

    request: NDArray[np.int32]
    token: NDArray[np.int32]
    experts: NDArray[np.uint16]


def text_rows(batch: RowBatch, manifest: Manifest) -> TextRows:
    """The committed rows in text order."""
    rows = committed_rows(batch, manifest)
    return TextRows(rows.request, rows.input_token, rows.experts)


def committed_rows(batch: RowBatch, manifest: Manifest) -> RowBatch:
    """Decode rows in text order: row 0 of each start; of a windowed trace, rows that were
    committed.

    The inputs of rows 0..a of a window are committed tokens; the next window repeats none of them.
    """
    decode = batch.take(batch.phase == DECODE)
    window = manifest.rows_per_start
    row = decode.row.reshape(-1, window)
    last = np.zeros((len(row), 1), np.int64)
    if manifest.kind == "windowed":
        accepted = leading_matches(decode.match.reshape(-1, window))
        choice = decode.target_choice.reshape(-1, window)[np.arange(len(row)), accepted]
        last = (accepted - (choice == UNKNOWN_TOKEN))[:, None]
    return decode.take((row <= last).ravel())
