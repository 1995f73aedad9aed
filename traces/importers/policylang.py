"""Import a trace of moe-policylang (trace_recorder), Parquet or JSON lines.

One entry per prompt, token and layer: prompt_id, token_idx, layer_idx, selected_experts, and where
recorded router_scores, token_id, phase ("prefill" or "decode"). The JSON lines carry a header with
model_name, num_layers, num_experts, top_k, then short keys p, t, l, e, s, ti, ph. The Parquet
file has no header: the model must be given, the number of experts too unless router_softmax is
there.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from policies.errors import UserError
from traces.importers.json_arrays import integer_array, number_array
from traces.importers.json_files import json_lines, mentions
from traces.importers.long_table import layer_note, pivot, same_length
from traces.importers.routing import Routing, without_split_prompts

_SHORT = {
    "prompt_id": "p",
    "token_idx": "t",
    "layer_idx": "l",
    "selected_experts": "e",
    "router_scores": "s",
    "token_id": "ti",
    "phase": "ph",
}
_NEEDED = ("prompt_id", "token_idx", "layer_idx", "selected_experts")
_PHASES = ("prefill", "decode")


def recognises_policylang(source: Path) -> bool:
    """A Parquet file with its columns, or its header in the first line."""
    if source.suffix == ".parquet":
        try:
            names = set(pq.read_schema(source).names)
        except (OSError, pa.ArrowException):
            return False
        return {"prompt_id", "token_idx", "layer_idx"} <= names
    return mentions(source, "model_name", "num_layers", "num_experts", "top_k")


def read_policylang(source: Path) -> Routing:
    """Each prompt as a request; its prefill, if phases were recorded, as the prompt."""
    parquet = source.suffix == ".parquet"
    columns, model, number = _read_parquet(source) if parquet else _read_lines(source)
    for name in _NEEDED:
        if name not in columns:
            raise UserError(
                f"{source}: column {name!r} is missing; found {', '.join(columns) or 'none'}. "
                "an older recording may hold router_softmax only; record it again"
            )
    request, position, layer = (
        integer_array(columns[name], 1, f"{source}: {name}") for name in _NEEDED[:3]
    )
    experts = same_length(columns["selected_experts"], "selected_experts", source)
    pivoted = pivot(request, position, layer, source)
    cells = pivoted.cells
    scores = columns.get("router_scores")
    weights = None
    if scores is not None:
        weights = number_array(scores, 2, f"{source}: router_scores")
        if weights.shape != experts.shape:
            raise UserError(
                f"{source}: router_scores has {weights.shape[1]} values an entry, "
                f"selected_experts {experts.shape[1]}"
            )
    token = columns.get("token_id")
    phase = columns.get("phase")
    return without_split_prompts(
        Routing(
            request=pivoted.request,
            position=pivoted.position,
            prompt=_prompt(phase, cells, source),
            token=None if token is None
            else integer_array(token, 1, f"{source}: token_id")[cells[:, 0]],
            experts=integer_array(experts, 2, f"{source}: selected_experts")[cells],
            weights=None if weights is None else weights[cells],
            model=model or None,
            number=number,
            notes={
                **layer_note(pivoted.layers),
                "phase": "as recorded" if phase is not None
                else "not recorded: prompts, if any, are played as generated text",
            },
        )
    )  # fmt: skip


def _prompt(phase: list[Any] | None, cells: NDArray[np.int64], source: Path) -> NDArray[np.bool_]:
    if phase is None:
        return np.zeros(len(cells), np.bool_)
    other = sorted({str(one) for one in phase} - set(_PHASES))
    if other:
        raise UserError(f"{source}: phase {other[0]!r}, expected one of {', '.join(_PHASES)}")
    return np.asarray([one == "prefill" for one in phase])[cells[:, 0]]


def _read_parquet(source: Path) -> tuple[dict[str, Any], str | None, int | None]:
    try:
        names = pq.read_schema(source).names
        wanted = [name for name in _SHORT if name in names]
        table = pq.read_table(source, columns=wanted, use_threads=False)
        number = None
        if "router_softmax" in names:
            first = pq.ParquetFile(source).read_row_group(0, columns=["router_softmax"])
            number = len(first.column(0)[0]) if len(first) else None
    except FileNotFoundError as error:
        raise UserError(f"{source}: no such file") from error
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{source}: not a readable Parquet file ({error})") from error
    return _complete({name: table.column(name).to_pylist() for name in wanted}), None, number


def _read_lines(source: Path) -> tuple[dict[str, Any], str | None, int | None]:
    lines = json_lines(source)
    _, header = next(lines, (0, {}))
    if "num_experts" not in header:
        raise UserError(
            f"{source}: the first line is not a header of moe-policylang (model_name, num_layers, "
            "num_experts, top_k)"
        )
    entries = [entry for _, entry in lines]
    announced = header.get("num_entries", len(entries))
    if announced != len(entries):
        raise UserError(
            f"{source}: {len(entries)} entries, the header says {announced}; the file is cut off"
        )
    columns = {name: [entry.get(key) for entry in entries] for name, key in _SHORT.items()}
    return _complete(columns), header.get("model_name"), int(header["num_experts"])


def _complete(columns: dict[str, list[Any]]) -> dict[str, Any]:
    """Without columns in which a value is missing: such a column says nothing of the others."""
    return {
        name: values for name, values in columns.items() if all(one is not None for one in values)
    }
