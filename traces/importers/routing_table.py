"""A table with one line per request, position and layer, as whoever reads a CSV-like format has it,
to the arrays of a `Routing`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from policies.errors import UserError
from traces.importers.json_arrays import integer_array, number_array
from traces.importers.long_table import layer_note, pivot
from traces.importers.routing import Routing, without_split_prompts

NEEDED = ("request", "position", "layer", "experts")
PHASES = ("prefill", "decode")
HEADER = 2  # the number of the first line below a header, counted from 1


def routing_of_table(
    table: pd.DataFrame, source: Path, model: str | None = None, number: int | None = None
) -> Routing:
    """The rows of `table`, lines in any order: the columns NEEDED, and where there are `weights`,
    `token`, `phase` (PHASES). Experts and weights of a line are lists, or text with spaces between
    the numbers. `model`, `number` of its experts: None if `source` does not say. UserError names
    the column and the line that do not fit."""
    if not isinstance(table.index, pd.RangeIndex):
        # pandas takes the fields in front that the header does not name as an index.
        raise UserError(
            f"{source}: lines have more fields than the header names (or lines were taken out of "
            "the table: reset_index)"
        )
    missing = [name for name in NEEDED if name not in table]
    if missing:
        found = ", ".join(map(str, table.columns)) or "none"
        raise UserError(f"{source}: column {missing[0]!r} is missing; found {found}")
    if table.empty:
        raise UserError(f"{source}: no lines with {', '.join(NEEDED)}")
    _refuse_empty(table, source)
    request, position, layer = (_integers(table, name, source) for name in NEEDED[:3])
    pivoted = pivot(request, position, layer, source)
    cells = pivoted.cells
    experts = integer_array(_lists(table, "experts", int, source), 2, f"{source}: experts")
    weights = None
    if "weights" in table:
        weights = number_array(_lists(table, "weights", float, source), 2, f"{source}: weights")
        if weights.shape != experts.shape:
            raise UserError(
                f"{source}: experts has {experts.shape[1]} numbers, weights {weights.shape[1]}"
            )
    return without_split_prompts(
        Routing(
            request=pivoted.request,
            position=pivoted.position,
            prompt=_prompt(table, source)[cells[:, 0]],
            token=_integers(table, "token", source)[cells[:, 0]] if "token" in table else None,
            experts=experts[cells],
            weights=None if weights is None else weights[cells],
            model=model,
            number=number,
            notes=layer_note(pivoted.layers),
        )
    )


def prompt_of(phases: Sequence[Any], source: Path) -> NDArray[np.bool_]:
    """bool [n]: prefill or not; UserError for another word."""
    other = sorted({str(one) for one in phases} - set(PHASES))
    if other:
        raise UserError(f"{source}: phase {other[0]!r}, expected one of {', '.join(PHASES)}")
    return np.asarray([one == "prefill" for one in phases])


def _prompt(table: pd.DataFrame, source: Path) -> NDArray[np.bool_]:
    if "phase" not in table:
        return np.zeros(len(table), np.bool_)
    return prompt_of(table["phase"].tolist(), source)


def _refuse_empty(table: pd.DataFrame, source: Path) -> None:
    for name in (*NEEDED, "weights", "token", "phase"):
        if name in table and table[name].isna().any():
            line = int(np.flatnonzero(table[name].isna())[0]) + HEADER
            raise UserError(f"{source}, line {line}: {name} is empty")


def _integers(table: pd.DataFrame, name: str, source: Path) -> NDArray[np.int64]:
    return integer_array(table[name].to_numpy(), 1, f"{source}: {name}")


def _lists(table: pd.DataFrame, name: str, kind: type, source: Path) -> list[list[Any]]:
    """The numbers of each line, as many as in the first."""
    lists: list[list[Any]] = []
    for line, cell in enumerate(table[name], start=HEADER):
        if isinstance(cell, list | tuple | np.ndarray):
            lists.append(list(cell))
            continue
        try:
            lists.append([kind(word) for word in str(cell).split()])
        except ValueError as error:
            raise UserError(
                f"{source}, line {line}: {name} is {str(cell)!r}, expected numbers with spaces "
                "between them"
            ) from error
        if not lists[-1]:
            raise UserError(f"{source}, line {line}: {name} is empty")
    for line, one in enumerate(lists, start=HEADER):
        if len(one) != len(lists[0]):
            raise UserError(
                f"{source}, line {line}: {name} has {len(one)} values, {len(lists[0])} in the "
                "first line; the number of experts per token must be the same everywhere"
            )
    return lists
