"""MeasuredTimes: what calibration found out about one model on one machine.

It is the `measured` section of a hardware profile. Simulator and runtime make the same cost table
of it, so that a prediction and the machine it is about cannot use different numbers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.costs import CostTable
from policies.errors import UserError

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class MeasuredTimes:
    """Times in ns. `cpu_ns`, `gpu_ns`: of one expert by the number of tokens in `rows`; `dense_ns`:
    of a layer without its experts by the rows of the pass. `draft_step_ns`, `pass_ns`: of the
    draft and of what a pass does once. `needs_ns`: prices in the order of policies.api.NEEDS.
    `leave_share`, of 1024: part of the decision after a join by which the next layer is later. The
    rest as in CostTable.
    """

    model: str
    dtype: str
    layers: int
    hidden: int
    expert_width: int
    expert_bytes: int
    rows: tuple[int, ...]
    cpu_ns: tuple[int, ...]
    gpu_ns: tuple[int, ...]
    dense_ns: tuple[int, ...]
    context_ns_per_1024: int
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
    needs_ns: tuple[int, ...]
    leave_share: int = 0

    def __post_init__(self) -> None:
        if not self.rows or list(self.rows) != sorted(set(self.rows)) or self.rows[0] < 1:
            raise UserError(f"rows: {list(self.rows)} must be rising numbers of tokens from 1 on")
        for name in ("cpu_ns", "gpu_ns", "dense_ns"):
            times = getattr(self, name)
            if len(times) != len(self.rows):
                raise UserError(f"{name}: {len(times)} times for {len(self.rows)} numbers of rows")
            if min(times) < 0 or list(times) != sorted(times):
                raise UserError(f"{name}: {list(times)} must not fall with the number of rows")
        if not 0 <= self.leave_share <= 1024:
            raise UserError(f"leave_share: {self.leave_share}, must be 0..1024 (of 1024)")
        if len(self.needs_ns) != 5:
            raise UserError(f"needs_ns: {len(self.needs_ns)} prices, there are 5 needs")

    def is_of(self, hidden: int, expert_width: int, expert_bytes: int) -> bool:
        """True if these times are those of a model with experts of this size."""
        mine = (self.hidden, self.expert_width, self.expert_bytes)
        return mine == (hidden, expert_width, expert_bytes)

    def cost_table(self, rows_max: int, draft: bool = True) -> CostTable:
        """Times for passes of up to `rows_max` rows: straight lines between the measured numbers of
        rows, rounded up, and on with the last slope. draft: False for a model without one.
        """
        table = CostTable(
            cpu_ns=self._by_rows(self.cpu_ns, rows_max),
            gpu_ns=self._by_rows(self.gpu_ns, rows_max),
            dense_ns=self._by_rows(self.dense_ns, rows_max),
            context_ns_per_1024=self.context_ns_per_1024,
            router_ns=self.held_up_ns(self.decision_leave_ns),  # the router's own is in dense_ns
            d2h_ns=self.d2h_ns,
            dispatch_ns=self.dispatch_ns,
            return_ns=self.return_ns,
            copy_latency_ns=self.copy_latency_ns,
            copy_ns=self.copy_ns,
            contention=self.contention,
            draft_step_ns=self.draft_step_ns if draft else 0,
            pass_ns=self.pass_ns,
            decision_layer_ns=self.decision_layer_ns,
            decision_leave_ns=self.decision_leave_ns,
            decision_draft_ns=self.decision_draft_ns,
            needs_ns=np.array(self.needs_ns, np.int64),
            expert_bytes=self.expert_bytes,
        )
        table.validate()
        return table

    def held_up_ns(self, leave_ns: int) -> int:
        """By how much a decision of `leave_ns` after a join delays the next layer, rounded up."""
        return -(-leave_ns * self.leave_share // 1024)

    def _by_rows(self, times: tuple[int, ...], rows_max: int) -> IntArray:
        return np.append(0, interpolated(self.rows, times, np.arange(1, rows_max + 1)))


def interpolated(
    rows: tuple[int, ...], times: tuple[int, ...], wanted: NDArray[np.int64]
) -> IntArray:
    """Times at `wanted` numbers of rows, int64, rounded up; the last slope goes on to the right,
    the first time to the left.
    """
    values = np.interp(wanted, rows, times)
    if len(rows) > 1:
        slope = (times[-1] - times[-2]) / (rows[-1] - rows[-2])
        values = np.where(wanted > rows[-1], times[-1] + slope * (wanted - rows[-1]), values)
    result: IntArray = np.ceil(values - 1e-6).astype(np.int64)
    return result
