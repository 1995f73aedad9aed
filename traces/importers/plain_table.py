"""Import plain CSV or JSON lines, the formats to write from one's own recorder.

CSV: a header, then one line per request, position and layer. Columns `request`, `position`,
`layer`, `experts` (numbers with spaces between them, "3 17 5 9"), and optionally `weights`
(likewise), `token`, `phase` (prefill or decode).

JSON lines: one object per token with `request`, `position`, `experts` [[..], ..] (one list per
layer), and optionally `weights` likewise, `token`, `phase`. The first line may instead be a header
with `model`, `num_experts`.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from policies.errors import UserError
from traces.importers.json_arrays import integer_array, key_of, number_array
from traces.importers.json_files import head_of, json_lines, mentions
from traces.importers.long_table import layer_note, pivot, same_length
from traces.importers.routing import Routing, without_split_prompts

_CSV_NEEDED = ("request", "position", "layer", "experts")
_PHASES = ("prefill", "decode")


def recognises_csv(source: Path) -> bool:
    """The suffix, and a header with the needed columns."""
    names = head_of(source).partition("\n")[0].strip().split(",")
    return source.suffix == ".csv" and {name.strip() for name in names} >= set(_CSV_NEEDED)


def read_csv(source: Path) -> Routing:
    """Requests and layers may come in any order."""
    try:
        table = pd.read_csv(source, dtype={"experts": str, "weights": str}, skipinitialspace=True)
    except FileNotFoundError as error:
        raise UserError(f"{source}: no such file") from error
    except (OSError, ValueError) as error:
        raise UserError(f"{source}: not a readable CSV file ({error})") from error
    missing = [name for name in _CSV_NEEDED if name not in table]
    if missing:
        found = ", ".join(map(str, table.columns))
        raise UserError(f"{source}: column {missing[0]!r} is missing; found {found}")
    if table.empty:
        raise UserError(f"{source}: no lines below the header")
    empty = [name for name in table if table[name].isna().any()]
    if empty:
        line = int(np.flatnonzero(table[empty[0]].isna())[0]) + 2
        raise UserError(f"{source}, line {line}: {empty[0]} is empty")
    request, position, layer = (
        integer_array(table[name].to_numpy(), 1, f"{source}: {name}") for name in _CSV_NEEDED[:3]
    )
    pivoted = pivot(request, position, layer, source)
    cells = pivoted.cells
    weights = _numbers(table["weights"], float, source) if "weights" in table else None
    token = table["token"].to_numpy() if "token" in table else None
    experts = _numbers(table["experts"], int, source)
    if weights is not None and weights.shape != experts.shape:
        raise UserError(f"{source}: experts has {experts.shape[1]} numbers, weights another count")
    phase = table["phase"].tolist() if "phase" in table else None
    return without_split_prompts(
        Routing(
            request=pivoted.request,
            position=pivoted.position,
            prompt=_prompt(phase, len(table), source)[cells[:, 0]],
            token=None if token is None
            else integer_array(token, 1, f"{source}: token")[cells[:, 0]],
            experts=experts[cells],
            weights=None if weights is None else weights[cells],
            notes=layer_note(pivoted.layers),
        )
    )  # fmt: skip


def recognises_json_lines(source: Path) -> bool:
    """Lines with the needed keys."""
    return source.suffix == ".jsonl" and mentions(source, "request", "position", "experts")


def read_json_lines(source: Path) -> Routing:
    """Tokens may come in any order."""
    lines = [(f"{source}, line {number}", line) for number, line in json_lines(source)]
    header: dict[str, Any] = {}
    if lines and "position" not in lines[0][1]:
        header = lines.pop(0)[1]
    if not lines:
        raise UserError(f"{source}: no lines with request, position and experts")
    experts = [
        integer_array(key_of(line, "experts", at), 2, f"{at}: experts") for at, line in lines
    ]
    weights = None
    if all("weights" in line for _, line in lines):
        weights = _same_shape(
            [number_array(line["weights"], 2, f"{at}: weights") for at, line in lines], lines
        )
    place = integer_array(
        [[key_of(line, name, at) for name in _CSV_NEEDED[:2]] for at, line in lines],
        2,
        f"{source}: request and position",
    )
    order = np.lexsort((place[:, 1], place[:, 0]))
    token = None
    if all("token" in line for _, line in lines):
        token = integer_array([line["token"] for _, line in lines], 1, f"{source}: token")[order]
    phase = [line["phase"] for _, line in lines] if "phase" in lines[0][1] else None
    stacked = _same_shape(experts, lines)
    if weights is not None and weights.shape != stacked.shape:
        raise UserError(f"{source}: weights have another shape than experts")
    return without_split_prompts(
        Routing(
            request=place[order, 0],
            position=place[order, 1],
            prompt=_prompt(phase, len(lines), source)[order],
            token=token,
            experts=stacked[order],
            weights=None if weights is None else weights[order],
            model=header.get("model"),
            number=header.get("num_experts"),
        )
    )


def _prompt(phase: list[Any] | None, lines: int, source: Path) -> NDArray[np.bool_]:
    if phase is None:
        return np.zeros(lines, np.bool_)
    other = sorted({str(one) for one in phase} - set(_PHASES))
    if other:
        raise UserError(f"{source}: phase {other[0]!r}, expected one of {', '.join(_PHASES)}")
    return np.asarray([one == "prefill" for one in phase])


def _numbers(column: "pd.Series[str]", kind: type, source: Path) -> NDArray[Any]:
    lists = []
    for line, text in enumerate(column, start=2):
        try:
            lists.append([kind(word) for word in text.split()])
        except ValueError as error:
            raise UserError(
                f"{source}, line {line}: {column.name} is {text!r}, expected numbers with spaces "
                "between them"
            ) from error
    return same_length(lists, str(column.name), source)


def _same_shape(arrays: list[NDArray[Any]], lines: list[tuple[str, Any]]) -> NDArray[Any]:
    for array, (at, _) in zip(arrays, lines, strict=True):
        if array.shape != arrays[0].shape:
            raise UserError(
                f"{at}: {list(array.shape)} layers x experts, before {list(arrays[0].shape)}"
            )
    return np.stack(arrays)
