"""Which slot holds which expert, as the next decision will see it."""

from policies.ledger import READY
from policies.session import Session
from runtime.transfers import Transfers


class SlotTable:
    """The ledger's map, plus the landings that were published and that the session takes in at its
    next call: residents that start early must be those that the decision will find READY.
    """

    def __init__(self, session: Session, transfers: Transfers) -> None:
        self._session, self._transfers = session, transfers

    def of_layer(self, layer: int) -> dict[int, int]:
        """Slot of each expert (number within the layer) that is READY."""
        ledger, experts = self._session.ledger, self._session.shape.experts
        base = layer * experts
        slots = ledger.expert_slot[base : base + experts]
        (ready,) = ((slots >= 0) & (ledger.slot_state[slots] == READY)).nonzero()
        table = dict(zip(ready.tolist(), slots[ready].tolist(), strict=True))
        for slot, generation in self._transfers.published():
            expert = int(ledger.slot_expert[slot]) - base
            if ledger.slot_generation[slot] == generation and 0 <= expert < experts:
                table[expert] = slot
        return table
