"""RowBatch: trace rows in memory, as numpy arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.errors import UserError

PREFILL = 0
DECODE = 1
UNKNOWN_TOKEN = -1
FILLER = 0xFFFF  # in next_layer, where layer l + h does not exist

_COLUMNS = {
    "request": np.int32,
    "phase": np.uint8,
    "start": np.int32,
    "row": np.int16,
    "input_token": np.int32,
    "target_choice": np.int32,
    "match": np.bool_,
}


@dataclass(frozen=True)
class RowBatch:
    """n rows; L layers, top-K experts, H lookahead distances.

    request int32 [n]; phase uint8 [n] (0 prefill, 1 decode); start int32 [n]; row int16 [n];
    input_token int32 [n]; target_choice int32 [n] (-1 unknown); match bool [n];
    experts uint16 [n, L, K]; router_weights float16 [n, L, K] or None;
    next_layer uint16 [H, n, L, K] or None: next_layer[h - 1, i, l] is what the router of layer l +
    h says about the router input of layer l, FILLER where l + h >= L.
    The position of a row's input token in prompt + generated text is start + row.
    """

    request: NDArray[np.int32]
    phase: NDArray[np.uint8]
    start: NDArray[np.int32]
    row: NDArray[np.int16]
    input_token: NDArray[np.int32]
    target_choice: NDArray[np.int32]
    match: NDArray[np.bool_]
    experts: NDArray[np.uint16]
    router_weights: NDArray[np.float16] | None = None
    next_layer: NDArray[np.uint16] | None = None

    def __post_init__(self) -> None:
        n, cells = len(self.request), np.shape(self.experts)
        for name, dtype in _COLUMNS.items():
            _expect(name, getattr(self, name), dtype, (n,))
        _expect("experts", self.experts, np.uint16, (n, *cells[1:]), dimensions=3)
        if self.router_weights is not None:
            _expect("router_weights", self.router_weights, np.float16, cells)
        if self.next_layer is not None:
            shape = (len(self.next_layer), *cells)
            _expect("next_layer", self.next_layer, np.uint16, shape, dimensions=4)

    def __len__(self) -> int:
        return len(self.request)

    def span(self, begin: int, end: int) -> "RowBatch":
        """Rows begin..end-1, as views."""
        return self.take(slice(begin, end))

    def take(self, index: slice | NDArray[Any]) -> "RowBatch":
        """The rows that a slice, a boolean mask or an index array selects."""
        chosen: dict[str, Any] = {}
        for item in fields(self):
            array = getattr(self, item.name)
            if array is not None:
                array = array[:, index] if item.name == "next_layer" else array[index]
            chosen[item.name] = array
        return RowBatch(**chosen)


def build_rows(
    *,
    request: ArrayLike,
    phase: ArrayLike,
    start: ArrayLike,
    row: ArrayLike,
    input_token: ArrayLike,
    target_choice: ArrayLike,
    match: ArrayLike,
    experts: ArrayLike,
    router_weights: ArrayLike | None = None,
    next_layer: ArrayLike | None = None,
) -> RowBatch:
    """A RowBatch from anything numpy takes; scalars repeat, values that do not fit are refused."""
    cells = _convert("experts", experts, np.uint16)
    scalars = {
        "request": request,
        "phase": phase,
        "start": start,
        "row": row,
        "input_token": input_token,
        "target_choice": target_choice,
        "match": match,
    }
    columns = {
        name: np.array(np.broadcast_to(_convert(name, value, _COLUMNS[name]), (len(cells),)))
        for name, value in scalars.items()
    }
    weights = None if router_weights is None else np.asarray(router_weights, np.float16)
    lookahead = None if next_layer is None else _convert("next_layer", next_layer, np.uint16)
    return RowBatch(**columns, experts=cells, router_weights=weights, next_layer=lookahead)


def concatenate_rows(batches: Sequence[RowBatch]) -> RowBatch:
    """All rows of `batches` (at least one, all with the same columns), in order."""
    if len(batches) == 1:
        return batches[0]
    joined: dict[str, Any] = {}
    for item in fields(RowBatch):
        arrays = [getattr(batch, item.name) for batch in batches]
        axis = 1 if item.name == "next_layer" else 0
        joined[item.name] = None if arrays[0] is None else np.concatenate(arrays, axis=axis)
    return RowBatch(**joined)


def _convert(name: str, value: ArrayLike, dtype: Any) -> NDArray[Any]:
    array = np.asarray(value)
    if array.dtype == dtype:
        return array
    converted = array.astype(dtype)
    if not np.array_equal(converted, array):
        low, high = array.min(), array.max()
        raise UserError(f"rows: {name} has values {low}..{high} that do not fit {np.dtype(dtype)}")
    return converted


def _expect(
    name: str, array: Any, dtype: Any, shape: tuple[int, ...], dimensions: int | None = None
) -> None:
    found = f"{getattr(array, 'dtype', type(array).__name__)} {list(np.shape(array))}"
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
        wanted = f"{np.dtype(dtype)} {list(shape)}"
        raise UserError(f"rows: {name} is {found}, expected {wanted}; use build_rows to convert")
    if dimensions is not None and array.ndim != dimensions:
        raise UserError(f"rows: {name} is {found}, expected {dimensions} dimensions")
