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
from traces.manifest import SCHEMA_VERSION, Manifest, ModelInfo, SamplingInfo
from traces.reader import Trace, open_trace
from traces.rows import DECODE, UNKNOWN_TOKEN, build_rows
from traces.writer import TraceWriter

# Bytes of one routed expert as published: gate, up and down matrices. gpt-oss stores 4.25 bits a
# weight (MXFP4) and bf16 biases.
_EXPERT_BYTES = {
    "openai/gpt-oss-20b": 3 * 2880 * 2880 * 17 // 32 + 3 * 2880 * 2,
    "deepseek-ai/DeepSeek-V2-Lite-Chat": 3 * 2048 * 1408 * 2,
}
_ARRAYS = {"experts": 3, "token": 1, "seq": 1, "pos": 1}


def import_npz(source: Path, destination: Path, expert_bytes: int | None = None) -> Trace:
    """Write the trace of `source` to the new directory `destination`.

    `expert_bytes` is needed for models whose size is not known here. Requests are the sequences,
    starts the positions in the file, which begin where recording began.
    """
    arrays = _read_arrays(source)
    meta = _read_meta(arrays, source)
    _check_shapes(arrays, source)
    experts, request, start = arrays["experts"], arrays["seq"], arrays["pos"]
    continues = np.append(request[1:] == request[:-1], False)
    if (np.diff(request) < 0).any() or (np.diff(start)[continues[:-1]] != 1).any():
        raise UserError(f"{source}: seq must ascend and pos must count by one within a sequence")
    name = str(meta["model"])
    size = expert_bytes or _EXPERT_BYTES.get(name)
    if size is None:
        raise UserError(f"{source}: bytes of an expert of {name} unknown, give expert_bytes=")
    token = arrays["token"]
    weights = arrays.get("weights")
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        kind="text",
        workload=source.stem,
        model=ModelInfo(name, experts.shape[1], int(meta["experts"]), experts.shape[2], size),
        draft=None,
        sampling=SamplingInfo("none", 0.0, 0),
        gamma_max=0,
        recorder="import npz",
        columns=() if weights is None else ("router_weights",),
        notes={
            key: str(meta[key])
            for key in ("repo", "licence", "phase", "order", "weights", "note")
            if key in meta
        },
    )
    rows = build_rows(
        request=request,
        phase=DECODE,
        start=start,
        row=0,
        input_token=token,
        target_choice=np.where(continues, np.roll(token, -1), UNKNOWN_TOKEN),
        match=False,
        experts=experts,
        router_weights=weights,
    )
    with TraceWriter(destination, manifest) as writer:
        writer.append(rows)
    return open_trace(destination)


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
