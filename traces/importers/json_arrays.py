"""Nested JSON lists to arrays; what does not fit is refused with its place."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError


def integer_array(value: Any, dimensions: int, where: str) -> NDArray[np.int64]:
    """`value` as int64 with so many dimensions; UserError at `where` otherwise."""
    array = _array(value, dimensions, where)
    if array.dtype.kind not in "iu":
        raise UserError(f"{where}: expected whole numbers, found {_shown(value)}")
    return array.astype(np.int64)


def number_array(value: Any, dimensions: int, where: str) -> NDArray[np.float64]:
    """`value` as float64 with so many dimensions, all finite; UserError at `where` otherwise."""
    array = _array(value, dimensions, where)
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise UserError(f"{where}: expected numbers, found {_shown(value)}")
    return array.astype(np.float64)


def key_of(record: dict[str, Any], key: str, where: str) -> Any:
    """record[key]; UserError with the keys that there are if it is missing or null."""
    value = record.get(key)
    if value is None:
        found = ", ".join(map(str, list(record)[:8])) or "none"
        raise UserError(f"{where}: key {key!r} is missing; found {found}")
    return value


def _array(value: Any, dimensions: int, where: str) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise UserError(f"{where}: the lists have unequal lengths: {_shown(value)}") from error
    if array.ndim != dimensions or array.size == 0:
        raise UserError(
            f"{where}: expected {dimensions} nested lists that are not empty, "
            f"found {_shown(value)} of shape {list(array.shape)}"
        )
    return array


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
