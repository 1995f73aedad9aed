"""More slots for shallow layers, whose predictions are worse (Fate, arXiv 2502.12224)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def shallow_quota(layers: int, experts: int, slots: int, bias: float) -> npt.NDArray[np.int64]:
    """int64 [layers]: falling linearly from (1 + bias) to (1 - bias) times the mean, rounded to the
    sum of `slots`, at most `experts` each."""
    depth = np.linspace(1.0, -1.0, layers) if layers > 1 else np.zeros(1)
    ideal = np.minimum(np.maximum(slots / layers * (1.0 + bias * depth), 0.0), experts)
    share = np.floor(ideal).astype(np.int64)
    # Largest remainders first, then the first layers with room.
    order = np.argsort(share - ideal, kind="stable")
    left = min(slots, layers * experts) - int(share.sum())
    while left > 0:
        for layer in order:
            if left > 0 and share[layer] < experts:
                share[layer] += 1
                left -= 1
    return share
