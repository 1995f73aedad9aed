"""The plans of a run log as plain tuples, to compare two runs decision by decision."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.decision import Decision
from traces.runlog import RunLog
from traces.runlog_schema import DECODE_PHASE

DRAFT, ENTER, LEAVE = "draft step", "layer", "end of layer"

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Plan:
    """One decision. `decode_pass` counts decode passes from 0; number: draft step or layer.

    placed: (expert, placement) ascending; demand, prefetch: (flat key, slot) in plan order.
    """

    decode_pass: int
    kind: str
    number: int
    placed: Pairs = ()
    demand: Pairs = ()
    prefetch: Pairs = ()

    def __str__(self) -> str:
        return (
            f"pass {self.decode_pass}, {self.kind} {self.number}: placed {self.placed}, "
            f"demand {self.demand}, prefetch {self.prefetch}"
        )


@dataclass(frozen=True)
class PlanComparison:
    """How far two runs agree. first_difference: one line, or "" where there is none."""

    decisions: int
    different: int
    first_difference: str

    @property
    def identical(self) -> bool:
        """Equal decisions, and at least one of them."""
        return self.different == 0 and self.decisions > 0


def plan_of(decode_pass: int, kind: str, number: int, decision: Decision) -> Plan:
    """The plan of a decision just made."""
    return Plan(
        decode_pass,
        kind,
        number,
        _pairs(decision.active, decision.placement),
        _pairs(decision.demand_expert, decision.demand_slot),
        _pairs(decision.prefetch_expert, decision.prefetch_slot),
    )


def plans_of(runlog: RunLog) -> list[Plan]:
    """Plans of all decode passes in the order in which they were made."""
    passes = runlog.passes[runlog.passes["phase"] == DECODE_PHASE]["pass_index"]
    number_of = {int(index): number for number, index in enumerate(passes)}
    drafts = _by_pass(runlog.drafts.sort_values(["pass_index", "step"]).itertuples())
    layers = _by_pass(runlog.layers.sort_values(["pass_index", "layer"]).itertuples())
    plans = []
    for index, number in number_of.items():
        for row in drafts.get(index, ()):
            prefetch = _pairs(row.prefetch_expert, row.prefetch_slot)
            plans.append(Plan(number, DRAFT, int(row.step), prefetch=prefetch))
        for row in layers.get(index, ()):
            plans.append(
                Plan(
                    number,
                    ENTER,
                    int(row.layer),
                    _pairs(row.experts, row.placement),
                    _pairs(row.demand_expert, row.demand_slot),
                    _pairs(row.prefetch_expert, row.prefetch_slot),
                )
            )
            leave = _pairs(row.leave_prefetch_expert, row.leave_prefetch_slot)
            plans.append(Plan(number, LEAVE, int(row.layer), prefetch=leave))
    return plans


def compare_plans(ours: list[Plan], theirs: list[Plan]) -> PlanComparison:
    """Compare in order; decisions that only one side has count as different."""
    first, different = "", abs(len(ours) - len(theirs))
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            different += 1
            first = first or f"{one} | {other}"
    if different and not first:
        first = f"{len(ours)} decisions | {len(theirs)} decisions"
    return PlanComparison(max(len(ours), len(theirs)), different, first)


def _pairs(left: Iterable[Any], right: Iterable[Any]) -> Pairs:
    pairs = zip(np.asarray(left).tolist(), np.asarray(right).tolist(), strict=True)
    return tuple((int(a), int(b)) for a, b in pairs)


def _by_pass(rows: Iterable[Any]) -> dict[int, list[Any]]:
    grouped: dict[int, list[Any]] = {}
    for row in rows:
        grouped.setdefault(int(row.pass_index), []).append(row)
    return grouped
