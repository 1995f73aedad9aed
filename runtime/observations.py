"""Everything that a session was told during a run, in order: enough to ask a fresh policy again.

One row per call. Stored beside the run log as observations.parquet; empty lists where a call has no
such argument.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from policies.errors import UserError

FILE_NAME = "observations.parquet"

START_REQUEST, START_PASS, DRAFT_STEP, ENTER_LAYER, LEAVE_LAYER, END_PASS = range(6)

_SCHEMA = pa.schema(
    [
        ("call", pa.uint8()),
        ("number", pa.int32()),
        ("token", pa.int32()),
        ("landed", pa.int64()),
        ("prompt", pa.list_(pa.int32())),
        ("rows", pa.int32()),
        ("experts", pa.list_(pa.uint16())),
        ("weights", pa.list_(pa.float64())),
        ("predicted", pa.list_(pa.uint16())),
    ]
)


class Observation(NamedTuple):
    """One call of a session.

    call: which; number: pass, draft step, layer, or accepted tokens; token: last committed or
    drafted; landed: copies into slots published up to and with this call; prompt int [n];
    experts int [rows, k]; weights float [rows, k] or None; predicted int [h, rows, k] or None.
    """

    call: int
    number: int = 0
    token: int = 0
    landed: int = 0
    prompt: tuple[int, ...] = ()
    experts: np.ndarray | None = None
    weights: np.ndarray | None = None
    predicted: np.ndarray | None = None


def write_observations(path: Path, observations: Sequence[Observation]) -> None:
    """Write a new file `path`."""
    columns: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
    for one in observations:
        columns["call"].append(one.call)
        columns["number"].append(one.number)
        columns["token"].append(one.token)
        columns["landed"].append(one.landed)
        columns["prompt"].append(one.prompt)
        columns["rows"].append(0 if one.experts is None else len(one.experts))
        for name in ("experts", "weights", "predicted"):
            array = getattr(one, name)
            columns[name].append([] if array is None else array.ravel())
    pq.write_table(pa.table(columns, schema=_SCHEMA), path, compression="zstd")


def read_observations(path: Path) -> list[Observation]:
    """The observations in `path`; UserError if it is not such a file."""
    try:
        table = pq.read_table(path, use_threads=False, pre_buffer=False)
    except (OSError, pa.ArrowException) as error:
        raise UserError(
            f"{path}: cannot read observations ({str(error).splitlines()[0]})"
        ) from None
    if table.schema.names != _SCHEMA.names:
        raise UserError(f"{path}: columns {table.schema.names} are not those of observations")
    return [_observation(row) for row in table.to_pylist()]


def _observation(row: dict[str, Any]) -> Observation:
    rows = row["rows"]
    experts = weights = predicted = None
    if rows:
        experts = np.array(row["experts"], np.int32).reshape(rows, -1)
        if row["weights"]:
            weights = np.array(row["weights"], np.float64).reshape(experts.shape)
        if row["predicted"]:
            predicted = np.array(row["predicted"], np.int32).reshape(-1, *experts.shape)
    return Observation(
        row["call"], row["number"], row["token"], row["landed"], tuple(row["prompt"]),
        experts, weights, predicted,
    )  # fmt: skip
