"""CostTable: all that a policy may know of time, in integer nanoseconds, rounded up once.

The table is filled by `simulator.hardware` (profiles) or `runtime.calibrate` (measurements).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


class CostTable(NamedTuple):
    """Times of one model on one machine. Arrays are int64 [max_rows + 1], indexed by token count;
    index 0 is 0.

    `dense_ns` is the fixed part of a layer (norms, attention, shared experts) by rows in the pass;
    the context adds
    `context_ns_per_1024 * context // 1024`. `contention` is q of 1024: the rate of CPU work while
    the link is busy.
    `decision_*_ns` are the measured times of the policy itself. `needs_ns` prices, in order:
    router mass,
    next_layer 1, 2, 3 (per layer) and draft tokens (per draft step).
    """

    cpu_ns: IntArray
    gpu_ns: IntArray
    dense_ns: IntArray
    context_ns_per_1024: int
    router_ns: int
    d2h_ns: int
    dispatch_ns: int
    return_ns: int
    copy_latency_ns: int
    copy_ns: int
    contention: int
    draft_step_ns: int
    pass_ns: int
    decision_layer_ns: int
    decision_leave_ns: int
    decision_draft_ns: int
    needs_ns: IntArray
    expert_bytes: int

    def validate(self) -> None:
        """Refuse tables that no machine can have; raises ValueError with the field and the
        number."""
        for name in ("cpu_ns", "gpu_ns", "dense_ns"):
            table = getattr(self, name)
            if table.dtype != np.int64 or table.ndim != 1 or len(table) < 2:
                raise ValueError(f"{name}: need int64 [rows + 1], got {table.dtype} {table.shape}")
            if table[0] != 0 or (np.diff(table) < 0).any():
                raise ValueError(f"{name}: must start at 0 and never fall with the token count")
        if self.copy_ns < 1:
            raise ValueError(f"copy_ns: {self.copy_ns}, must be at least 1")
        if not 1 <= self.contention <= 1024:
            raise ValueError(f"contention: {self.contention}, must be 1..1024 (of 1024)")

    def layer_ns(self, rows: int) -> int:
        """Fixed time of one layer without routed experts: what credits at a layer are computed
        from."""
        return int(self.dense_ns[rows]) + self.router_ns + self.d2h_ns
