"""Which slot holds which expert, as the next decision will see it."""

import numpy as np

from policies.ledger import READY
from policies.session import Session
from runtime.slot_kernels import NOWHERE
from runtime.transfers import Transfers


class SlotTable:
    """The ledger's map, plus the landings that were published and that the session takes in at its
    next call: residents that start early must be those that the decision will find READY.
    """

    def __init__(self, session: Session, transfers: Transfers) -> None:
        self._session, self._transfers = session, transfers

    def of_layer(self, layer: int) -> np.ndarray:
        """int32 [experts]: slot of each expert of the layer that is READY, else -1."""
        ledger, experts = self._session.ledger, self._session.shape.experts
        base = layer * experts
        slots = ledger.expert_slot[base : base + experts]
        table = np.where((slots >= 0) & (ledger.slot_state[slots] == READY), slots, NOWHERE)
        for slot, generation in self._transfers.published():
            expert = int(ledger.slot_expert[slot]) - base
            if ledger.slot_generation[slot] == generation and 0 <= expert < experts:
                table[expert] = slot
        return table.astype(np.int32)
