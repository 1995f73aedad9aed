"""What one layer has to compute and where, whether a policy decided it or the prefill rule."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from policies.api import CPU, GPU
from policies.costs import CostTable
from policies.decision import STREAMED, Decision
from policies.plan import IN_FLIGHT, STAGING
from policies.session import Session
from runtime.pace import extended
from runtime.transfers import Transfers

OUTSIDE_THE_LEDGER = -1  # generation of prefill copies, which no slot of the ledger knows


class Held(NamedTuple):
    """An expert (number within the layer) and the slot that holds it or will hold it."""

    expert: int
    slot: int


class LayerWork(NamedTuple):
    """residents, slot by expert (number within the layer), can start at once; cold experts are for
    the CPU, in this order; arrivals compute when their copy lands, in that order.
    """

    layer: int
    residents: Mapping[int, int]
    cold: Sequence[int]
    arrivals: Sequence[Held]


def decided_work(
    layer: int, decision: Decision, session: Session, transfers: Transfers
) -> LayerWork:
    """The work of a decision whose copies have been handed to `transfers`."""
    base = layer * session.shape.experts
    held = session.ledger.expert_slot[decision.active + base].tolist()
    residents, cold = {}, []
    for expert, placement, slot in zip(
        decision.active.tolist(), decision.placement.tolist(), held, strict=True
    ):
        if placement == GPU:
            residents[expert] = slot
        elif placement == CPU:
            cold.append(expert)
    arrivals = _arrivals(base, decision, session, transfers) if len(decision.demand_expert) else []
    return LayerWork(layer, residents, cold, arrivals)


def _arrivals(base: int, decision: Decision, session: Session, transfers: Transfers) -> list[Held]:
    slot_of = session.ledger.expert_slot
    streamed = {copy.expert: copy.slot for copy in decision.copies if copy.kind == STREAMED}
    on_their_way, new = [], []
    for key, slot in zip(
        decision.demand_expert.tolist(), decision.demand_slot.tolist(), strict=True
    ):
        if slot == IN_FLIGHT:
            on_their_way.append(Held(key - base, int(slot_of[key])))
        else:
            new.append(Held(key - base, streamed[key] if slot == STAGING else slot))
    # Copies land in the order of their issue, and a plan may name those on their way in any order.
    on_their_way.sort(key=lambda held: transfers.order_of(held.slot))
    return on_their_way + new


def prefill_work(
    layer: int,
    groups: Mapping[int, Sequence[int]],
    costs: CostTable,
    session: Session,
    transfers: Transfers,
) -> LayerWork:
    """Per expert the cheaper of CPU and streaming; slots and ledger are left alone. groups: choices
    by expert.

    Starts the copies.
    """
    shape = session.shape
    cold, arrivals = [], []
    for expert, choices in groups.items():
        copy_ns = costs.copy_latency_ns + costs.copy_ns
        streamed = copy_ns + extended(costs.gpu_ns, len(choices))
        if shape.staging == 0 or streamed >= extended(costs.cpu_ns, len(choices)):
            cold.append(expert)
            continue
        slot = shape.slots + len(arrivals) % shape.staging
        arrivals.append(Held(expert, slot))
        transfers.start_copy(layer * shape.experts + expert, slot, OUTSIDE_THE_LEDGER, STREAMED)
    return LayerWork(layer, {}, cold, arrivals)
