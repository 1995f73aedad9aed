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
from traces.importers.routing import Routing, without_split_prompts
from traces.importers.routing_table import NEEDED, prompt_of, routing_of_table


def recognises_csv(source: Path) -> bool:
    """The suffix, and a header with the needed columns."""
    names = head_of(source).partition("\n")[0].strip().split(",")
    return source.suffix == ".csv" and {name.strip() for name in names} >= set(NEEDED)


def read_csv(source: Path) -> Routing:
    """Requests and layers may come in any order."""
    lists = {"experts": str, "weights": str}
    return routing_of_table(pd.read_csv(source, dtype=lists, skipinitialspace=True), source)


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
        [[key_of(line, name, at) for name in NEEDED[:2]] for at, line in lines],
        2,
        f"{source}: request and position",
    )
    order = np.lexsort((place[:, 1], place[:, 0]))
    token = None
    if all("token" in line for _, line in lines):
        token = integer_array([line["token"] for _, line in lines], 1, f"{source}: token")[order]
    prompt = np.zeros(len(lines), np.bool_)
    if "phase" in lines[0][1]:
        prompt = prompt_of([key_of(line, "phase", at) for at, line in lines], source)
    stacked = _same_shape(experts, lines)
    if weights is not None and weights.shape != stacked.shape:
        raise UserError(f"{source}: weights have another shape than experts")
    return without_split_prompts(
        Routing(
            request=place[order, 0],
            position=place[order, 1],
            prompt=prompt[order],
            token=token,
            experts=stacked[order],
            weights=None if weights is None else weights[order],
            model=header.get("model"),
            number=header.get("num_experts"),
        )
    )


def _same_shape(arrays: list[NDArray[Any]], lines: list[tuple[str, Any]]) -> NDArray[Any]:
    for array, (at, _) in zip(arrays, lines, strict=True):
        if array.shape != arrays[0].shape:
            raise UserError(
                f"{at}: {list(array.shape)} layers x experts, before {list(arrays[0].shape)}"
            )
    return np.stack(arrays)
