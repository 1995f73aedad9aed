"""Import a .npz of routing decisions along a text: experts, token, seq, pos, vocab, meta, maybe
weights.

Such files hold no drafts and no prompt rows: the result is a trace of kind text.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.importers.routing import Routing

_ARRAYS = {"experts": 3, "token": 1, "seq": 1, "pos": 1}


def recognises_npz(source: Path) -> bool:
    """The suffix: what is inside is checked when it is read."""
    return source.suffix == ".npz"


def read_npz(source: Path) -> Routing:
    """Requests are the sequences; positions begin where recording began."""
    arrays = _read_arrays(source)
    meta = _read_meta(arrays, source)
    _check_shapes(arrays, source)
    return Routing(
        request=arrays["seq"],
        position=arrays["pos"],
        prompt=np.zeros(len(arrays["seq"]), np.bool_),
        token=arrays["token"],
        experts=arrays["experts"],
        weights=arrays.get("weights"),
        model=str(meta["model"]),
        number=int(meta["experts"]),
        notes={
            key: str(meta[key])
            for key in ("repo", "licence", "phase", "order", "weights", "note")
            if key in meta
        },
    )


def _read_arrays(source: Path) -> dict[str, NDArray[Any]]:
    try:
        # Pickled objects could run code, so they are never loaded.
        with open(source, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files if name != "vocab"}
    except FileNotFoundError as error:
        raise UserError(f"{source}: no such file") from error
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{source}: not a .npz of plain arrays ({error})") from error


def _read_meta(arrays: dict[str, NDArray[Any]], source: Path) -> dict[str, Any]:
    missing = [name for name in (*_ARRAYS, "meta") if name not in arrays]
    if missing:
        raise UserError(f"{source}: array {missing[0]!r} is missing; found {', '.join(arrays)}")
    try:
        meta = json.loads(str(arrays["meta"]))
    except json.JSONDecodeError as error:
        raise UserError(f"{source}: array 'meta' is not a JSON string ({error})") from error
    for key, kind in (("model", str), ("experts", int)):
        if not isinstance(meta, dict) or not isinstance(meta.get(key), kind):
            raise UserError(f"{source}: meta needs the key {key!r}, a {kind.__name__}")
    return dict(meta)


def _check_shapes(arrays: dict[str, NDArray[Any]], source: Path) -> None:
    rows = len(arrays["experts"]) if arrays["experts"].ndim else 0
    for name, dimensions in _ARRAYS.items():
        array = arrays[name]
        if array.ndim != dimensions or len(array) != rows or array.dtype.kind not in "iu":
            raise UserError(
                f"{source}: array {name!r} is {array.dtype} {list(array.shape)}, "
                f"expected integers with {dimensions} dimensions and {rows} rows"
            )
    weights = arrays.get("weights")
    if rows == 0:
        raise UserError(f"{source}: array 'experts' has no rows")
    if weights is not None and weights.shape != arrays["experts"].shape:
        raise UserError(
            f"{source}: array 'weights' is {list(weights.shape)}, not like experts "
            f"{list(arrays['experts'].shape)}"
        )
