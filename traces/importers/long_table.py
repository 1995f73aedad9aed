"""From a table with one line per request, token and layer to arrays with one row per token."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError


@dataclass(frozen=True)
class Pivoted:
    """request, position int64 [n], sorted by both; layers: the layer numbers found, ascending;
    cells int64 [n, L]: the line that holds a token's layer."""

    request: NDArray[np.int64]
    position: NDArray[np.int64]
    layers: NDArray[np.int64]
    cells: NDArray[np.int64]


def pivot(
    request: NDArray[Any], position: NDArray[Any], layer: NDArray[Any], source: Path
) -> Pivoted:
    """All arrays int [lines]. UserError where a token lacks a layer or has one twice."""
    if len(request) == 0:
        raise UserError(f"{source}: no lines")
    layers, column = np.unique(layer, return_inverse=True)
    keys, row = np.unique(np.stack([request, position], axis=1), axis=0, return_inverse=True)
    row = row.reshape(-1)
    count = np.zeros((len(keys), len(layers)), np.int64)
    np.add.at(count, (row, column), 1)
    wrong = np.argwhere(count != 1)
    if len(wrong):
        at, of = wrong[0]
        times = "is missing" if count[at, of] == 0 else f"occurs {count[at, of]} times"
        raise UserError(
            f"{source}: request {keys[at, 0]}, position {keys[at, 1]}: layer {layers[of]} {times} "
            f"({len(wrong)} such places); every token needs each of the {len(layers)} layers once"
        )
    cells = np.empty(count.shape, np.int64)
    cells[row, column] = np.arange(len(row))
    return Pivoted(keys[:, 0], keys[:, 1], layers.astype(np.int64), cells)


def layer_note(layers: NDArray[np.int64]) -> dict[str, str]:
    """A note where the numbers of the layers are not 0, 1, ..: dense layers have no router."""
    if np.array_equal(layers, np.arange(len(layers))):
        return {}
    return {
        "layers": f"numbered {int(layers[0])}..{int(layers[-1])} in the file, {len(layers)} in all"
    }
