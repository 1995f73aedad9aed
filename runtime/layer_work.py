"""What one layer has to compute and where, whether a policy decided it or the prefill rule."""

from collections.abc import Mapping
from dataclasses import dataclass

from policies.api import CPU, GPU
from policies.costs import CostTable
from policies.decision import STREAMED, Decision
from policies.plan import IN_FLIGHT, STAGING
from policies.session import Session
from runtime.pace import extended
from runtime.row_groups import RowGroup
from runtime.transfers import Transfers

OUTSIDE_THE_LEDGER = -1  # generation of prefill copies, which no slot of the ledger knows


@dataclass(frozen=True)
class Held:
    """An expert (number within the layer) and the slot that holds it or will hold it."""

    expert: int
    slot: int


@dataclass(frozen=True)
class LayerWork:
    """residents can start at once; cold experts are for the CPU, in this order; arrivals compute
    when their copy lands, in that order.
    """

    layer: int
    residents: tuple[Held, ...]
    cold: tuple[int, ...]
    arrivals: tuple[Held, ...]


def decided_work(
    layer: int, decision: Decision, session: Session, transfers: Transfers
) -> LayerWork:
    """The work of a decision whose copies have been handed to `transfers`."""
    base = layer * session.shape.experts
    slot_of = session.ledger.expert_slot
    numbers = [int(expert) for expert in decision.active]
    placed = dict(zip(numbers, decision.placement.tolist(), strict=True))
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
    return LayerWork(
        layer,
        tuple(Held(e, int(slot_of[base + e])) for e in numbers if placed[e] == GPU),
        tuple(e for e in numbers if placed[e] == CPU),
        (*on_their_way, *new),
    )


def prefill_work(
    layer: int,
    groups: Mapping[int, RowGroup],
    costs: CostTable,
    session: Session,
    transfers: Transfers,
) -> LayerWork:
    """Per expert the cheaper of CPU and streaming; slots and ledger are left alone.

    Starts the copies.
    """
    shape = session.shape
    cold, arrivals = [], []
    for expert, group in groups.items():
        copy_ns = costs.copy_latency_ns + costs.copy_ns
        streamed = copy_ns + extended(costs.gpu_ns, len(group.rows))
        if shape.staging == 0 or streamed >= extended(costs.cpu_ns, len(group.rows)):
            cold.append(expert)
            continue
        slot = shape.slots + len(arrivals) % shape.staging
        arrivals.append(Held(expert, slot))
        transfers.start_copy(layer * shape.experts + expert, slot, OUTSIDE_THE_LEDGER, STREAMED)
    return LayerWork(layer, (), tuple(cold), tuple(arrivals))
