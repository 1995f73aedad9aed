"""Clock: SimPy's environment, whose time is whole nanoseconds in this project."""

from __future__ import annotations

import simpy


class Clock(simpy.Environment):
    """Starts at 0 ns. All delays are integers, so `now_ns` is one."""

    @property
    def now_ns(self) -> int:
        """Time in ns."""
        assert isinstance(self.now, int)
        return self.now
