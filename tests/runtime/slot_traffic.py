"""Random traffic on slots and staging buffers of a stand-in with a hazard checker."""

import random
import time
from dataclasses import dataclass

import torch
from offload_setup import random_arena

from policies.decision import DEMAND, STREAMED
from runtime.device import COMPUTE, COPY
from runtime.expert_layout import ExpertLayout
from runtime.hazards import HazardChecker
from runtime.slots import SlotPool, slot_name
from runtime.standin import StandIn
from runtime.standin_link import Link
from runtime.transfers import Transfers

LAYOUT = ExpertLayout(layers=1, experts=12, hidden=4, width=4, dtype=torch.float32)
SLOTS, STAGING = 3, 2
PAUSES = 0.02  # share of readers that dawdle


@dataclass(frozen=True)
class Outcome:
    """reuses: copies into a slot or buffer that had held another expert; wrong: readers that did
    not see their expert's weights; kinds: of the hazards reported.
    """

    reuses: int
    wrong: int
    kinds: list[str]


class SlotTraffic:
    """Fills and reads slots in random order, as the engine may: demand copies and streamed ones are
    read behind their event, residents without one once their landing is published.
    """

    def __init__(
        self,
        seed: int,
        pool_class: type[SlotPool] = SlotPool,
        transfers_class: type[Transfers] = Transfers,
        device_class: type[StandIn] = StandIn,
    ) -> None:
        self.choose, self.checker = random.Random(seed), HazardChecker()
        self.device = device_class({COPY: Link(None)}, self.checker)
        self.arena = random_arena(LAYOUT, self.device)
        self.pool = pool_class(LAYOUT, SLOTS, STAGING, self.device)
        self.transfers = transfers_class(self.device, self.arena, self.pool)
        self.compute = self.device.stream(COMPUTE)
        self.held: dict[int, int] = {}  # slot -> expert whose copy was started last
        self.resident: dict[int, int] = {}  # slot -> expert, published
        self.results: list[torch.Tensor] = []
        self.expected: list[torch.Tensor] = []
        self.generations: dict[int, int] = {}
        self.reuses = self.generation = 0

    def run(self, reuses: int) -> Outcome:
        """Go on until so many slots were used again."""
        steps = (self.demand, self.stream, self.read_resident, self.prefetch)
        try:
            while self.reuses < reuses:
                self.choose.choice(steps)()
                if self.choose.random() < 0.3:
                    self.look()
        except BaseException:
            self.device.close()  # a refusal leaves no thread behind either
            raise
        return self.end()

    def end(self) -> Outcome:
        last = self.device.event()
        self.device.record(last, self.compute)
        self.device.synchronize(last)
        self.device.close()
        pairs = zip(self.results, self.expected, strict=True)
        wrong = sum(not torch.equal(a, b) for a, b in pairs)
        return Outcome(self.reuses, wrong, [hazard.kind for hazard in self.checker.hazards])

    def demand(self) -> None:
        """Fetch and read at once."""
        slot = self.choose.randrange(SLOTS)
        self.read(slot, self.fill(slot, DEMAND), behind_event=True)

    def prefetch(self) -> None:
        """Fetch; some later step may read it."""
        self.fill(self.choose.randrange(SLOTS), DEMAND)

    def stream(self) -> None:
        """Through the staging buffers in turn; all copies are started before the first reader."""
        turns = [(SLOTS + n % STAGING) for n in range(self.choose.randrange(1, 5))]
        pairs = [(slot, self.fill(slot, STREAMED)) for slot in turns]
        for slot, expert in pairs:
            self.read(slot, expert, behind_event=True)

    def read_resident(self) -> None:
        """What the host knows to have landed needs no event."""
        if self.resident:
            slot = self.choose.choice(sorted(self.resident))
            self.read(slot, self.resident[slot], behind_event=False)

    def look(self) -> None:
        """The host takes in what has landed."""
        self.transfers.publish(self.device.clock_ns())
        for slot, generation in zip(*self.transfers.landed(), strict=True):
            held = self.held.get(int(slot))
            if held is not None and self.generations[int(slot)] == int(generation):
                self.resident[int(slot)] = held

    def fill(self, slot: int, kind: int) -> int:
        expert = self.choose.randrange(LAYOUT.total)
        self.generation += 1
        self.generations[slot] = self.generation
        self.resident.pop(slot, None)
        self.reuses += slot in self.held
        self.held[slot] = expert
        self.transfers.start_copy(expert, slot, self.generation, kind)
        return expert

    def read(self, slot: int, expert: int, behind_event: bool) -> None:
        if behind_event:
            self.device.wait(self.compute, self.transfers.event_of(slot, expert))
        # The first reader of a staging buffer is its only one: after that it is refilled.
        for _ in range(self.choose.randrange(1, 3) if slot < SLOTS else 1):
            pause = self.choose.random() * 2e-4 if self.choose.random() < PAUSES else 0.0

            def work(at: int = slot, pause: float = pause) -> None:
                if pause:
                    time.sleep(pause)
                self.results.append(self.pool.down(at).clone())

            event = self.device.run(self.compute, work, reads=(slot_name(slot),))
            self.transfers.read(slot, event)
            self.expected.append(self.arena.down(expert))
