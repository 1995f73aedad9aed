"""Stretches the stand-in's work to the times of a hardware profile, so that lanes overlap as they
would there.

Sleeping, not spinning: on a small machine a spinning lane would take the core that another needs.
"""

import time

import numpy as np

from policies.costs import CostTable


class Pace:
    """`costs` None: as fast as the machine can. Each method waits until the profile's time since
    `begin_ns` has passed; experts and dense parts by rows.

    For experts it returns when the work should have ended: the next one of the lane begins there,
    so that waking up late does not add up.
    """

    def __init__(self, costs: CostTable | None) -> None:
        self._costs = costs

    def now_ns(self) -> int:
        """The clock on which the others count."""
        return time.monotonic_ns()

    def gpu_expert(self, begin_ns: int, rows: int) -> int:
        """One expert on the GPU lane."""
        if self._costs is None:
            return time.monotonic_ns()
        return _sleep_until(begin_ns + extended(self._costs.gpu_ns, rows))

    def cpu_expert(self, begin_ns: int, rows: int) -> int:
        """One expert on the CPU lane."""
        if self._costs is None:
            return time.monotonic_ns()
        return _sleep_until(begin_ns + extended(self._costs.cpu_ns, rows))

    def dense(self, begin_ns: int, rows: int) -> None:
        """Attention and router of one layer."""
        if self._costs is not None:
            _sleep_until(begin_ns + extended(self._costs.dense_ns, rows) + self._costs.router_ns)

    def draft_step(self, begin_ns: int) -> None:
        """One step of the draft."""
        if self._costs is not None:
            _sleep_until(begin_ns + self._costs.draft_step_ns)

    def head(self, begin_ns: int) -> None:
        """What a pass does once, after its last layer."""
        if self._costs is not None:
            _sleep_until(begin_ns + self._costs.pass_ns)


def extended(table: np.ndarray, rows: int) -> int:
    """Entry for `rows` of a table by rows, continued in proportion beyond its end."""
    last = len(table) - 1
    return int(table[rows]) if rows <= last else int(table[last]) * rows // last


def _sleep_until(deadline_ns: int) -> int:
    left = deadline_ns - time.monotonic_ns()
    if left > 0:
        time.sleep(left / 1e9)
    return deadline_ns
