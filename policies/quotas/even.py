"""The same number of slots for every layer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def even_quota(layers: int, slots: int) -> npt.NDArray[np.int64]:
    """int64 [layers]: slots spread evenly, the remainder to the first layers."""
    share = np.full(layers, slots // layers, np.int64)
    share[: slots % layers] += 1
    return share
