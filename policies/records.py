"""Records: all that a decision reads and writes, handed to compiled code as one object.

Called with its six records of some fifty arrays, a kernel spends most of its time unpacking them.
They are packed once instead; the decisions are those of policies.kernels.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.experimental import structref

from policies import kernels
from policies.by_reference import by_reference
from policies.compile import kernel
from policies.observation import sliced

FIELDS = ("program", "state", "costs", "ledger", "observation", "plan")


@structref.register
class RecordsType(types.StructRef):  # type: ignore[misc]
    """numba's type of Records."""

    def preprocess_fields(self, fields: Any) -> Any:
        """Numbers by type, not by value."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Records(structref.StructRefProxy):  # type: ignore[misc]
    """program, state, costs, ledger, observation, plan, as policies.kernels takes them."""

    def __new__(
        cls, program: Any, state: Any, costs: Any, ledger: Any, observation: Any, plan: Any
    ) -> Any:
        """Pack; the arrays stay shared with the caller."""
        fields = (program, state, costs, ledger, observation, plan)
        return structref.StructRefProxy.__new__(cls, *fields)


structref.define_proxy(Records, RecordsType, list(FIELDS))


# A packed object is reference-counted, so whoever takes arrays out of one counts references.
@kernel
def enter_layer(
    records, layer, staging, launch_early, experts, weights, predicted, slots, generations, landed
):
    """policies.kernels.enter_layer."""
    return kernels.enter_layer(
        records.program, by_reference(records.state), by_reference(records.costs),
        by_reference(records.ledger), by_reference(records.observation),
        by_reference(records.plan), layer, staging, launch_early, experts, weights,
        sliced(predicted), slots, generations, landed,
    )  # fmt: skip


@kernel
def leave_layer(records, layer, slots, generations, landed):
    """policies.kernels.leave_layer."""
    return kernels.leave_layer(
        records.program, by_reference(records.state), by_reference(records.costs),
        by_reference(records.ledger), by_reference(records.observation),
        by_reference(records.plan), layer, slots, generations, landed,
    )  # fmt: skip


@kernel
def draft_step(records, draft_ns_left, slots, generations, landed):
    """policies.kernels.draft_step."""
    return kernels.draft_step(
        records.program, by_reference(records.state), by_reference(records.costs),
        by_reference(records.ledger), by_reference(records.observation),
        by_reference(records.plan), draft_ns_left, slots, generations, landed,
    )  # fmt: skip
