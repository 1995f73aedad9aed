"""One layer's requests as a file of libCacheSim's oracleGeneral format: 24 bytes a request, little
endian, with the request at which the same object comes next (oracleGeneralBin.h: unaligned, the
largest int64 for never)."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.atomic import write_atomically
from traces.caches import next_uses
from traces.reader import Trace
from traces.text_rows import text_rows

REQUEST = np.dtype([("time", "<u4"), ("object", "<u8"), ("bytes", "<u4"), ("next", "<i8")])
NEVER = np.iinfo(np.int64).max
MOST_BYTES = np.iinfo(np.uint32).max
SUFFIX = ".oracleGeneral.bin"


def write_oracle_general(
    path: Path, requests: NDArray[np.int64], experts: int, size: int = 1
) -> Path:
    """Write `requests`, int64 [n] of expert numbers below `experts`, each of `size` bytes."""
    records = np.zeros(len(requests), REQUEST)
    records["time"] = np.arange(len(requests))
    records["object"] = requests
    records["bytes"] = size
    records["next"] = next_uses(np.ascontiguousarray(requests[:, None]), experts, NEVER)[:, 0]
    write_atomically(path, records.tobytes())
    return path


def layer_requests(trace: Trace) -> NDArray[np.int64]:
    """int64 [L, n * K]: each layer's experts in the order of tokens and within them."""
    experts = text_rows(trace.load(), trace.manifest).experts
    return experts.transpose(1, 0, 2).reshape(experts.shape[1], -1).astype(np.int64)


def export_oracle_general(trace: Trace, folder: str | Path) -> list[Path]:
    """Write one file for each layer of the committed text to the new `folder`.

    A cache of C experts is one of C * expert_bytes there, or of C with sizes ignored.
    """
    model, folder = trace.manifest.model, Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already and is not empty; name a new folder")
    if model.expert_bytes > MOST_BYTES:
        raise UserError(
            f"{trace.path}: experts of {model.expert_bytes} bytes, the format holds up to "
            f"{MOST_BYTES}"
        )
    requests = layer_requests(trace)
    if requests.size == 0:
        raise UserError(f"{trace.path}: no committed tokens to export")
    folder.mkdir(parents=True, exist_ok=True)
    return [
        write_oracle_general(
            folder / f"layer-{layer:03d}{SUFFIX}", one, model.experts, model.expert_bytes
        )
        for layer, one in enumerate(requests)
    ]
