"""Arrow tables from rows or from columns, with a fixed schema of numbers and lists of numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from policies.errors import UserError

Values = NDArray[Any] | Sequence[Any] | tuple[NDArray[Any], NDArray[Any]]


def table_from_rows(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows are tuples in the order of `schema`; list columns hold integer arrays."""
    arrays = []
    for field, column in zip(schema, zip(*rows, strict=True), strict=True):
        if pa.types.is_list(field.type):
            offsets = np.zeros(len(column) + 1, np.int32)
            np.cumsum([len(values) for values in column], out=offsets[1:])
            arrays.append(_lists(offsets, np.concatenate(column), field.type))
        else:
            arrays.append(pa.array(column, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def table_from_columns(schema: pa.Schema, columns: Mapping[str, Values]) -> pa.Table:
    """`columns` has every column of `schema`; a list column is (offsets [n + 1], values).
    All are copied, since Arrow would keep a caller's buffers that are written again."""
    missing = [name for name in schema.names if name not in columns]
    unknown = [name for name in columns if name not in schema.names]
    if missing or unknown:
        raise UserError(f"run log columns: missing {missing}, unknown {unknown}")
    arrays = []
    for field in schema:
        values = columns[field.name]
        if pa.types.is_list(field.type):
            offsets, flat = values
            arrays.append(_lists(np.array(offsets), np.array(flat), field.type))
        else:
            arrays.append(pa.array(np.array(values)).cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _lists(offsets: NDArray[Any], values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    flat = pa.array(values).cast(kind.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat).cast(kind)
