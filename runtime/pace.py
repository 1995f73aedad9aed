"""Stretches the stand-in's work to the times of a hardware profile, so that lanes overlap as they
would there.

Sleeping, not spinning: on a small machine a spinning lane would take the core that another needs.
Every rule of the simulated machine has its wait here: dense part, message to the host, decisions on
one host thread, dispatch, contention, return, draft step, head. The link keeps its own time
(`standin_link`).
"""

import time

import numpy as np

from policies.api import NEEDS
from policies.costs import CostTable
from runtime.contention import contended_end
from runtime.standin import StandIn

PER_STEP = "draft_tokens"


class Pace:
    """`costs` None: as fast as the machine can; methods then wait for nothing and return None.

    They return when the work should have ended, and the next work of the lane begins there, so that
    waking up late does not add up. Work that took longer than its time is counted in `overruns` and
    never made up for. `waits` counts all.
    """

    def __init__(
        self,
        costs: CostTable | None,
        device: StandIn | None = None,
        needs: frozenset[str] = frozenset(),
    ) -> None:
        self._costs, self._device = costs, device
        self._host_free_ns = 0
        self.waits = self.overruns = 0
        prices = [] if costs is None else zip(NEEDS, costs.needs_ns.tolist(), strict=True)
        charged = {need: price for need, price in prices if need in needs}
        self._step_price_ns = charged.pop(PER_STEP, 0)
        self._layer_price_ns = sum(charged.values())

    @property
    def keeps_time(self) -> bool:
        """False if everything is as fast as the machine can."""
        return self._costs is not None

    def now_ns(self) -> int:
        """The clock on which the others count."""
        return time.monotonic_ns()

    def gpu_expert(self, begin_ns: int, rows: int) -> int:
        """One expert on the GPU lane."""
        if self._costs is None:
            return time.monotonic_ns()
        return self._sleep_until(begin_ns + extended(self._costs.gpu_ns, rows))

    def cpu_begin(self, since_ns: int) -> int | None:
        """The CPU lane gets its work, which was handed over at `since_ns`."""
        if self._costs is None:
            return None
        return self._sleep_until(since_ns + self._costs.dispatch_ns)

    def cpu_experts(self, begin_ns: int | None, rows: list[int]) -> None:
        """All experts of a layer on the CPU lane, one piece of work; it is slower while the link is
        busy.
        """
        if self._costs is None or begin_ns is None:
            return
        work = sum(extended(self._costs.cpu_ns, count) for count in rows)
        end = begin_ns + work
        while True:
            self._sleep_until(end)
            busy = [] if self._device is None else self._device.link_busy(begin_ns)
            later = contended_end(begin_ns, work, self._costs.contention, busy)
            if later <= end:
                return
            end = later

    def returned(self, end_ns: int) -> None:
        """The CPU lane's results, ready at `end_ns`, have come back."""
        if self._costs is not None:
            self._sleep_until(end_ns + self._costs.return_ns)

    def dense(self, begin_ns: int, rows: int, context: int) -> int | None:
        """Attention and router of one layer, after a text of `context` tokens."""
        costs = self._costs
        if costs is None:
            return None
        attention = extended(costs.dense_ns, rows) + costs.context_ns_per_1024 * context // 1024
        return self._sleep_until(begin_ns + attention + costs.router_ns)

    def enter(self, router_ns: int) -> int | None:
        """A decision at a layer, whose router ended at `router_ns`, is about to be made: when it
        will be over. Copies it starts enter the link then.
        """
        if self._costs is None:
            return None
        arrived = router_ns + self._costs.d2h_ns + self._layer_price_ns
        return self._decision(arrived, self._costs.decision_layer_ns)

    def leave(self, join_ns: int) -> None:
        """The same for the decision after a join. It holds up nothing but the host."""
        if self._costs is not None:
            self._decision(join_ns, self._costs.decision_leave_ns)

    def drafted(self, step_ns: int) -> None:
        """The same for the decision after a draft step."""
        if self._costs is not None:
            self._decision(step_ns, self._costs.decision_draft_ns)

    def until(self, end_ns: int | None) -> int | None:
        """Wait for the end of a decision."""
        return None if end_ns is None else self._sleep_until(end_ns)

    def draft_step(self, begin_ns: int) -> int | None:
        """One step of the draft."""
        if self._costs is None:
            return None
        return self._sleep_until(begin_ns + self._costs.draft_step_ns + self._step_price_ns)

    def head(self, begin_ns: int) -> int | None:
        """What a pass does once, after its last layer."""
        if self._costs is None:
            return None
        return self._sleep_until(begin_ns + self._costs.pass_ns)

    def _decision(self, ready_ns: int, decision_ns: int) -> int:
        self._host_free_ns = max(ready_ns, self._host_free_ns) + decision_ns
        if self._device is not None:
            self._device.hold_copies(self._host_free_ns)
        return self._host_free_ns

    def _sleep_until(self, deadline_ns: int) -> int:
        left = deadline_ns - time.monotonic_ns()
        self.waits += 1
        if left <= 0:
            self.overruns += 1
            return deadline_ns - left
        time.sleep(left / 1e9)
        return deadline_ns


def extended(table: np.ndarray, rows: int) -> int:
    """Entry for `rows` of a table by rows, continued in proportion beyond its end."""
    last = len(table) - 1
    return int(table[rows]) if rows <= last else int(table[last]) * rows // last


def slow_motion(costs: CostTable, factor: int) -> CostTable:
    """`costs` with every time `factor` times as long: the same machine, seen in slow motion."""
    times = {
        name: getattr(costs, name) * factor
        for name in costs._fields
        if name.endswith("_ns") or name == "context_ns_per_1024"
    }
    return costs._replace(**times)
