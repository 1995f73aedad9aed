"""The nouns of a decision and the protocol of a policy. Pure data: no time, no threads, no I/O.

A policy is called synchronously by `policies.session.Session`, in the simulator and in the runtime
alike. It sees
arrays, never tensors, and returns data. It keeps its parameters as given, so that every run can be
logged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from policies.costs import CostTable

IntArray = npt.NDArray[np.int32]

UNUSED = 0
GPU = 1
CPU = 2
FETCH = 3
STREAM = 4
PLACEMENTS = ("unused", "GPU", "CPU", "FETCH", "STREAM")

NEEDS = ("router_mass", "next_layer_1", "next_layer_2", "next_layer_3", "draft_tokens")


class Shape(NamedTuple):
    """Sizes fixed for a run. `launch_early`: READY active experts must be placed on the GPU."""

    layers: int
    experts: int
    top_k: int
    slots: int
    staging: int
    gamma_max: int
    launch_early: bool


@dataclass(frozen=True)
class Routing:
    """What the router of one layer chose for the rows of this pass.

    experts: int [rows, top_k]; weights: float [rows, top_k] or None; predicted: int [horizon,
    rows, top_k], the
    experts that the routers of layers l+1.. would choose for this layer's router input, or None.
    """

    layer: int
    experts: npt.NDArray[Any]
    weights: npt.NDArray[Any] | None = None
    predicted: npt.NDArray[Any] | None = None


@dataclass(frozen=True)
class View:
    """Read-only sight of the pool at a decision. `credits`: prefetches that may be started now.

    slot_expert int32 [slots] (flat key or -1), slot_state int8 [slots] (0 FREE, 1 FILLING, 2
    READY),
    slot_in_use bool [slots], expert_slot int32 [layers * experts] (-1 where neither READY nor
    FILLING).
    """

    layer: int
    credits: int
    slot_expert: IntArray
    slot_state: npt.NDArray[np.int8]
    slot_in_use: npt.NDArray[np.bool_]
    expert_slot: IntArray

    def ready(self, expert: int) -> bool:
        """True if the expert (flat key) is resident."""
        slot = self.expert_slot[expert]
        return bool(slot >= 0 and self.slot_state[slot] == 2)

    def filling(self, expert: int) -> bool:
        """True if a copy of the expert (flat key) is on its way."""
        slot = self.expert_slot[expert]
        return bool(slot >= 0 and self.slot_state[slot] == 1)


class Copy(NamedTuple):
    """Copy `expert` (flat key) into `slot`; the slot's old expert, if any, is the victim."""

    expert: int
    slot: int


@dataclass(frozen=True)
class LayerPlan:
    """Placement of every active expert of a layer, then optional prefetches in order.

    placement: expert number within the layer -> GPU, CPU, FETCH or STREAM. Demand copies run in
    the order of
    `demand`: FETCH with the slot it takes (-1: a copy already on its way), STREAM with slot -1.
    """

    placement: dict[int, int]
    demand: tuple[Copy, ...] = ()
    prefetch: tuple[Copy, ...] = ()


@dataclass(frozen=True)
class Future:
    """What a clairvoyant may know: activation counts of every pass to come, in replay order.

    counts uint8 [passes, layers, experts] for a fixed window size.
    """

    counts: npt.NDArray[np.uint8] = field(repr=False)


@runtime_checkable
class Policy(Protocol):
    """A scheduling policy. `needs` names the priced observations it reads (see NEEDS).

    Optional: `wishes`, those needs that it can do without, and `do_without(needs)`, which takes
    such of them out of `needs` for traces that lack them (run.json says so).
    """

    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> frozenset[str]: ...
    def parameters(self) -> dict[str, Any]: ...
    def reset(self, shape: Shape, costs: CostTable) -> None: ...
    def start_request(self, prompt: IntArray) -> None: ...
    def start_pass(self, last_token: int) -> int: ...
    def draft_step(self, step: int, token: int, view: View) -> tuple[Copy, ...]: ...
    def enter_layer(self, routing: Routing, view: View) -> LayerPlan: ...
    def leave_layer(self, layer: int, view: View) -> tuple[Copy, ...]: ...
    def end_pass(self, accepted: int) -> None: ...


@runtime_checkable
class Clairvoyant(Protocol):
    """A policy that is shown the future. Only the simulator accepts one, and it never wins a
    comparison."""

    def foresee(self, future: Future) -> None: ...
