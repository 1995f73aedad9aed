"""What a clairvoyant policy is shown: the counts of all passes to come, at a fixed window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from policies.api import Clairvoyant, Future
from policies.composed import ComposedPolicy
from policies.errors import UserError
from policies.parts import FixedWindow
from traces.replay import Replay


def is_clairvoyant(policy: Any) -> bool:
    """True if the policy must be shown the future."""
    if isinstance(policy, ComposedPolicy):
        return policy.clairvoyant
    return isinstance(policy, Clairvoyant)


def clairvoyant_gamma(policy: Any, gamma_max: int) -> int:
    """The window that a clairvoyant policy always uses; UserError if it adapts its window."""
    window = getattr(policy, "window", None)
    if window is None:
        return gamma_max
    if not isinstance(window, FixedWindow):
        raise UserError(
            f"policy {policy.name}: a clairvoyant needs a fixed window (its future depends on it), "
            f"not {type(window).__name__}"
        )
    return window.choose(gamma_max)


def future_of(replay: Replay, requests: Sequence[int], gamma: int) -> Future:
    """Counts uint8 [passes, layers, experts] of all passes of `requests`, in replay order."""
    if gamma > 254:
        raise UserError(f"gamma {gamma}: a clairvoyant policy takes at most 254")
    model = replay.model
    counts = []
    for request in requests:
        start, end = replay.first(request), replay.end(request)
        while start < end:
            window = replay.window(request, start, gamma)
            layer = np.arange(model.layers)[None, :, None]
            keys = (layer * model.experts + window.experts).ravel()
            flat = np.bincount(keys, minlength=model.layers * model.experts)
            counts.append(flat.astype(np.uint8).reshape(model.layers, model.experts))
            start += window.committed
    return Future(np.array(counts, np.uint8).reshape(-1, model.layers, model.experts))
