"""Whole layers or nothing, as llama.cpp's `--n-cpu-moe` places experts: the first layers on the
CPU, the last ones in VRAM."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def whole_layers_quota(layers: int, experts: int, slots: int) -> npt.NDArray[np.int64]:
    """int64 [layers]: `experts` for as many of the last layers as fit; slots left over stay
    empty."""
    share = np.zeros(layers, np.int64)
    resident = min(layers, slots // experts)
    share[layers - resident :] = experts
    return share
