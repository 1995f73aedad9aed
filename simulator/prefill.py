"""Prefill of one layer: beside the policy and its slots, each expert the cheaper way."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from policies import api
from policies.costs import CostTable
from policies.decision import Decision
from policies.plan import STAGING

NOTHING = np.zeros(0, np.int32)


def prefill_decision(
    experts: npt.NDArray[np.uint16], layer: int, total: int, staging: int, costs: CostTable
) -> Decision:
    """CPU or STREAM for each expert of uint16 [P, K], whichever takes less alone; without staging
    buffers all on the CPU. `total`: experts of a layer."""
    counts = np.bincount(experts.ravel(), minlength=total).astype(np.int32)
    active = np.flatnonzero(counts).astype(np.int32)
    counts = counts[active]
    streamed = costs.copy_latency_ns + costs.copy_ns + costs.gpu_ns[counts]
    faster = (streamed < costs.cpu_ns[counts]) & (staging > 0)
    placement = np.where(faster, api.STREAM, api.CPU).astype(np.int8)
    demand = (layer * total + active[faster]).astype(np.int32)
    return Decision(
        view=0, landed=0, credits=0, active=active, counts=counts, placement=placement,
        hit=np.zeros(len(active), np.uint8), demand_expert=demand,
        demand_slot=np.full(len(demand), STAGING, np.int32),
        prefetch_expert=NOTHING, prefetch_slot=NOTHING, copies=(),
    )  # fmt: skip
