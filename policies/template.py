"""A policy of your own: `cp policies/template.py my_policy.py`, rename the class, change it.

    spac policies check=my_policy.MyPolicy           every rule that a policy must keep
    spac compare policy=[my_policy.MyPolicy,lru_cpu] no_speculation=null

Both look for my_policy.py on Python's path, then in the folder where they are called. The same
class runs in the simulator and with `spac run policy=my_policy.MyPolicy` in the runtime.

The rules. A policy is called, it never calls: no thread, clock, file or global random state, since
the same inputs must give the same decisions. Parameters stay as given; whatever is learned goes
into `reset`, which must forget everything. A plan that breaks a rule ends the run with a line that
names the rule, the expert and the slot. Experts are flat keys, layer * experts + expert, except in
`placement`, which has the numbers within the layer.
"""

from typing import Any

from policies.api import CPU, GPU, Copy, IntArray, LayerPlan, Routing, Shape, View
from policies.costs import CostTable


class MyPolicy:
    """Residents on the GPU, the rest on the CPU. Every expert has a score that fades from pass to
    pass and grows with the rows that choose it; experts with more than the worst resident are
    copied in behind the work."""

    name = "my_policy"
    # Observations with a price: router_mass, next_layer_1 to 3, draft_tokens (policies.api.NEEDS).
    # Without its name here an observation is withheld. Exact counts of the layer at hand are free.
    needs: frozenset[str] = frozenset()

    def __init__(self, fade: float = 0.9) -> None:
        # `spac compare policy=my_policy.MyPolicy policy.fade=[0.5,0.9]` tries both.
        self.fade = fade

    def parameters(self) -> dict[str, Any]:
        """What is written to every result beside the name; as given, never changed."""
        return {"fade": self.fade}

    def reset(self, shape: Shape, costs: CostTable) -> None:
        """A run begins. `shape`: layers, experts, top_k, slots, staging, gamma_max, launch_early;
        `costs`: all that may be known of time, in ns (policies.costs.CostTable)."""
        self.shape = shape
        self.costs = costs
        self.score = [0.0] * (shape.layers * shape.experts)

    def start_request(self, prompt: IntArray) -> None:
        """A request begins; slots and scores survive it."""

    def start_pass(self, last_token: int) -> int:
        """Drafted tokens of this pass, 0..gamma_max; 0 means no drafting this time."""
        self.score = [self.fade * score for score in self.score]
        return self.shape.gamma_max

    def draft_step(self, step: int, token: int, view: View) -> tuple[Copy, ...]:
        """After each drafted token: prefetches, at most view.credits."""
        return ()

    def enter_layer(self, routing: Routing, view: View) -> LayerPlan:
        """The router of routing.layer has spoken. routing.experts: int [rows, top_k]. `view`: the
        pool as it was when the layer began, read only."""
        base = routing.layer * self.shape.experts
        for expert in routing.experts.ravel().tolist():
            self.score[base + expert] += 1.0
        active = sorted(set(routing.experts.ravel().tolist()))
        # GPU only for residents. A miss may also be FETCH: Copy(key, slot) in `demand`, or STREAM:
        # Copy(key, -1), through a staging buffer and dropped afterwards.
        placement = {expert: GPU if view.ready(base + expert) else CPU for expert in active}
        wanted = [base + expert for expert in active if view.expert_slot[base + expert] < 0]
        return LayerPlan(placement, prefetch=self._admit(wanted, base, placement, view))

    def leave_layer(self, layer: int, view: View) -> tuple[Copy, ...]:
        """The layer is done and its readers are gone: more prefetches, if you like."""
        return ()

    def end_pass(self, accepted: int) -> None:
        """How many of the drafted tokens were right."""

    def _admit(
        self, wanted: list[int], base: int, placement: dict[int, int], view: View
    ) -> tuple[Copy, ...]:
        """Copies of `wanted`, best first, each into a free slot or in place of a worse resident."""
        # A victim must be READY (2), read by nobody, and not needed by this very layer.
        slots = [
            slot
            for slot in range(self.shape.slots)
            if view.slot_state[slot] == 0
            or (
                view.slot_state[slot] == 2
                and not view.slot_in_use[slot]
                and int(view.slot_expert[slot]) - base not in placement
            )
        ]
        slots.sort(key=lambda slot: self._worth(slot, view))
        wanted = sorted(wanted, key=lambda key: (-self.score[key], key))
        # `credits` is how many prefetches may be started now; more would be refused.
        pairs = list(zip(wanted, slots, strict=False))[: view.credits]
        return tuple(
            Copy(key, slot) for key, slot in pairs if self.score[key] > self._worth(slot, view)
        )

    def _worth(self, slot: int, view: View) -> float:
        """Score of what is in the slot; a free one comes first."""
        if view.slot_state[slot] == 0:
            return -1.0
        return self.score[int(view.slot_expert[slot])]
