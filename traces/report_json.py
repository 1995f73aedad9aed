"""JSON of what was measured: what is undefined is null, and no value can lose the rest."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from traces.atomic import write_atomically


def write_json(path: Path, data: object, indent: int = 2) -> None:
    """Write `data` to `path` whole or not at all, as JSON that every reader takes: NaN and
    infinities are null, numpy's numbers and arrays plain ones, what JSON has no name for is text.
    """
    text = json.dumps(_plain(data), indent=indent, allow_nan=False, ensure_ascii=False)
    write_atomically(path, f"{text}\n".encode())


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return str(value)
