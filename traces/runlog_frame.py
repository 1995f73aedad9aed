"""A data frame from an Arrow table, without an array for each row where lists are nearly all empty,
as the copies of a decision are."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

FEW = 4  # one row in so many may have entries


def frame_from_table(table: pa.Table) -> pd.DataFrame:
    """As `table.to_pandas()`, for tables of numbers and lists of numbers without nulls. Arrow makes
    an array for each row; here empty rows of a column with few others share one."""
    columns = {}
    for field in table.schema:
        column = table[field.name]
        lists = _sparse_lists(column) if pa.types.is_list(field.type) else None
        columns[field.name] = column.to_numpy() if lists is None else lists
    return pd.DataFrame(columns, pd.RangeIndex(len(table)))


def _sparse_lists(column: pa.ChunkedArray) -> NDArray[Any] | None:
    """The rows' arrays, slices of one; None if more than one row in FEW has entries."""
    whole = column.combine_chunks()
    offsets = whole.offsets.to_numpy()
    rows = np.flatnonzero(np.diff(offsets))
    if FEW * len(rows) > len(whole):
        return None
    entries = whole.values.to_numpy()
    lists = np.empty(len(whole), object)
    lists.fill(entries[:0])
    ends = zip(rows.tolist(), offsets[rows].tolist(), offsets[rows + 1].tolist(), strict=True)
    for row, begin, end in ends:
        lists[row] = entries[begin:end]
    return lists
