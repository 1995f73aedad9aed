"""CalibrationPolicy: a policy in plain Python that keeps one lane busy, so that it can be timed."""

import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from policies.api import CPU, FETCH, GPU, Copy, LayerPlan, Routing, Shape, View
from policies.costs import CostTable

Lane = Literal["cpu", "gpu"]


class CalibrationPolicy:
    """lane "cpu": every active expert on the CPU; "gpu": on the GPU, fetched where absent. traffic:
    copies of experts that nobody needs keep the link busy. needs: declared, and ignored. pause_ns:
    time that the decision after a join takes at least.
    """

    name = "calibration"

    def __init__(
        self, lane: Lane, traffic: bool = False, needs: Sequence[str] = (), pause_ns: int = 0
    ) -> None:
        self.lane, self.traffic, self.pause_ns = lane, traffic, pause_ns
        self.needs = frozenset(needs)

    def parameters(self) -> dict[str, Any]:
        """For the log."""
        return {"lane": self.lane, "traffic": self.traffic, "needs": sorted(self.needs)}

    def reset(self, shape: Shape, costs: CostTable) -> None:
        """See policies.api.Policy."""
        self.shape_ = shape
        self.next_ = 0

    def start_request(self, prompt: np.ndarray) -> None:
        """Nothing to learn."""

    def start_pass(self, last_token: int) -> int:
        """The largest window."""
        return self.shape_.gamma_max

    def draft_step(self, step: int, token: int, view: View) -> tuple[Copy, ...]:
        """Traffic only."""
        return self._noise(view, set())

    def enter_layer(self, routing: Routing, view: View) -> LayerPlan:
        """See the class."""
        base = routing.layer * self.shape_.experts
        active = [int(expert) for expert in np.unique(routing.experts)]
        if self.lane == "cpu":
            keys = {base + expert for expert in active}
            placement = dict.fromkeys(active, CPU)
            return LayerPlan(placement, (), self._noise(view, keys))
        taken = {int(view.expert_slot[base + e]) for e in active if view.ready(base + e)}
        placement, demand = {}, []
        for expert in active:
            if view.ready(base + expert):
                placement[expert] = GPU
                continue
            slot = self._victim(view, taken)
            if slot is None:
                placement[expert] = CPU
            else:
                taken.add(slot)
                placement[expert] = FETCH
                demand.append(Copy(base + expert, slot))
        return LayerPlan(placement, tuple(demand), ())

    def leave_layer(self, layer: int, view: View) -> tuple[Copy, ...]:
        """Traffic, and the pause: the host is busy, as it is while a policy thinks."""
        until = time.monotonic_ns() + self.pause_ns
        while time.monotonic_ns() < until:
            pass
        return self._noise(view, set())

    def end_pass(self, accepted: int) -> None:
        """Nothing to learn."""

    def _victim(self, view: View, taken: set[int]) -> int | None:
        """The next slot in turn that may be overwritten."""
        for _ in range(self.shape_.slots):
            slot = self.next_
            self.next_ = (slot + 1) % self.shape_.slots
            filling = view.slot_state[slot] == 1
            if not filling and not view.slot_in_use[slot] and slot not in taken:
                return slot
        return None

    def _noise(self, view: View, needed: set[int]) -> tuple[Copy, ...]:
        """As many copies of absent experts as credits allow."""
        if not self.traffic:
            return ()
        copies: list[Copy] = []
        taken: set[int] = set()
        absent = np.flatnonzero(view.expert_slot < 0)
        for expert in np.roll(absent, -self.next_).tolist():
            if len(copies) == min(view.credits, len(absent)):
                break
            slot = self._victim(view, taken)
            if slot is None:
                break
            if expert not in needed:
                taken.add(slot)
                copies.append(Copy(expert, slot))
        return tuple(copies)
