"""Compiles the decision at a layer, the larger half of all that decisions are made of, into the
kernel cache. Run as a program beside a process that comes to it last; nothing is played."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types

from policies.by_reference import ReferenceType
from policies.costs import CostTable
from policies.kernels import enter_layer
from policies.ledger import new_ledger
from policies.observation import new_observation
from policies.plan import new_plan
from policies.state import Program, new_state


def layer_signature() -> tuple[Any, ...]:
    """Types of policies.kernels.enter_layer's arguments wherever a composed policy decides."""
    costs: dict[str, Any] = dict.fromkeys(CostTable._fields, 0)
    costs |= dict.fromkeys(("cpu_ns", "gpu_ns", "dense_ns", "needs_ns"), np.zeros(2, np.int64))
    records = (
        new_state(1, 1), CostTable(**costs), new_ledger(1, 1, 1, 0), new_observation(1),
        new_plan(1, 1, 1),
    )  # fmt: skip
    experts, weights = types.Array(types.int32, 2, "C"), types.Array(types.float64, 2, "C")
    predicted, landed = types.Array(types.int32, 3, "A"), types.Array(types.int64, 1, "C")
    return (
        numba.typeof(Program(0, 0, 0, 0, 0, 0)),
        *(ReferenceType(numba.typeof(record)) for record in records),
        types.int64, types.int64, types.boolean,  # layer, staging, launch_early
        experts, weights, predicted, landed, landed, types.int64,
    )  # fmt: skip


if __name__ == "__main__":
    enter_layer.compile(layer_signature())
