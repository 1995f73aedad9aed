"""One layer's requests as a file of libCacheSim's oracleGeneral format: 24 bytes a request, little
endian, with the request at which the same object comes next."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traces.atomic import write_atomically
from traces.caches import next_uses

REQUEST = np.dtype([("time", "<u4"), ("object", "<u8"), ("bytes", "<u4"), ("next", "<i8")])
NEVER = np.iinfo(np.int64).max


def write_oracle_general(path: Path, requests: NDArray[np.int64], experts: int) -> Path:
    """Write `requests`, int64 [n] of expert numbers below `experts`; every expert is 1 byte."""
    records = np.zeros(len(requests), REQUEST)
    records["time"] = np.arange(len(requests))
    records["object"] = requests
    records["bytes"] = 1
    records["next"] = next_uses(np.ascontiguousarray(requests[:, None]), experts, NEVER)[:, 0]
    write_atomically(path, records.tobytes())
    return path
