"""How many prefetches may be in flight: enough to hide under the work at hand, never a backlog
that demand waits behind."""

from __future__ import annotations

from policies.compile import kernel

LAYER_CAP = 4
DRAFT_CAP = 12


@kernel(allocates=False)
def layer_cap(layer_ns, copy_ns):
    """Copies in flight allowed at a layer: clamp(1 + ceil(layer_ns / copy_ns), 1, 4)."""
    return min(LAYER_CAP, max(1, 1 + (layer_ns + copy_ns - 1) // copy_ns))


@kernel(allocates=False)
def draft_cap(draft_ns_left, copy_ns):
    """Copies in flight allowed while drafting: min(12, floor(draft_ns_left / copy_ns) + 4)."""
    return min(DRAFT_CAP, draft_ns_left // copy_ns + LAYER_CAP)
