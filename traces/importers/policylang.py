"""Import a trace of moe-policylang (trace_recorder), Parquet or JSON lines.

One entry per prompt, token and layer: prompt_id, token_idx, layer_idx, selected_experts, and where
recorded router_scores, token_id, phase ("prefill" or "decode"). The JSON lines carry a header with
model_name, num_layers, num_experts, top_k, then short keys p, t, l, e, s, ti, ph. The Parquet
file has no header: the model must be given, the number of experts too unless router_softmax is
there. Checked against moe-policylang 1.15.0, whose recorder knows the token ids of the prompt only:
a column in which any value is missing is left out.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from policies.errors import UserError
from traces.importers.json_files import json_lines, mentions
from traces.importers.routing import Routing
from traces.importers.routing_table import routing_of_table

_SHORT = {
    "prompt_id": "p",
    "token_idx": "t",
    "layer_idx": "l",
    "selected_experts": "e",
    "router_scores": "s",
    "token_id": "ti",
    "phase": "ph",
}
_OURS = {
    "prompt_id": "request",
    "token_idx": "position",
    "layer_idx": "layer",
    "selected_experts": "experts",
    "router_scores": "weights",
    "token_id": "token",
    "phase": "phase",
}
_NEEDED = ("prompt_id", "token_idx", "layer_idx", "selected_experts")


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
    table = pd.DataFrame({_OURS[name]: values for name, values in columns.items()})
    routing = routing_of_table(table, source, model or None, number)
    said = "as recorded"
    if "phase" not in columns:
        said = "not recorded: prompts, if any, are played as generated text"
    return replace(routing, notes=routing.notes | {"phase": said})


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
