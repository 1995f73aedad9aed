"""Victims of the whole pool and the candidates of the movers, against plain loops over every slot
and every expert."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from policies import api
from policies.api import Shape
from policies.compile import python_kernel
from policies.conformance import plain_costs
from policies.ledger import FILLING, FREE, NOWHERE, OK, READY, begin_fill, new_ledger, publish
from policies.movers.admit import admit_misses
from policies.movers.by_utility import move_by_utility
from policies.movers.candidates import lowest_anywhere
from policies.movers.victims import victim_anywhere
from policies.observation import new_observation
from policies.plan import PREFETCH_LIMIT, new_plan
from policies.state import LAYER, PASS
from policies.zoo import ZOO

begin_fill = python_kernel(begin_fill)
publish = python_kernel(publish)
victim_anywhere = python_kernel(victim_anywhere)
lowest_anywhere = python_kernel(lowest_anywhere)
move_by_utility = python_kernel(move_by_utility)
admit_misses = python_kernel(admit_misses)

LAYERS, EXPERTS, SLOTS = 5, 6, 12
SHAPE = Shape(LAYERS, EXPERTS, 2, SLOTS, 1, 2, False)
FLOOR_OF_NOTHING = 1e300


@dataclass
class Pool:
    """A pool that fills, landings, utilities and stamps change at random; few values, many ties."""

    random: np.random.Generator
    policy: object = field(default_factory=lambda: ZOO["spac"]())

    def __post_init__(self) -> None:
        self.policy.reset(SHAPE, plain_costs())
        self.state = self.policy.state_
        self.ledger = new_ledger(LAYERS, EXPERTS, SLOTS, 1)
        self.plan = new_plan(LAYERS, EXPERTS, SLOTS)
        self.observation = new_observation(EXPERTS)

    def change(self) -> None:
        random, ledger, state = self.random, self.ledger, self.state
        ledger.slot_readers[:] = 0
        for slot in np.flatnonzero((ledger.slot_state == FILLING) & (random.random(SLOTS) < 0.5)):
            assert publish(ledger, slot, int(ledger.slot_generation[slot])) == OK
        for _ in range(int(random.integers(4))):
            begin_fill(ledger, int(random.integers(LAYERS * EXPERTS)), int(random.integers(SLOTS)))
        layer = int(random.integers(LAYERS))
        state.utility[layer] = random.integers(0, 4, EXPERTS)
        state.stamp[layer] = random.integers(-1, 3, EXPERTS)
        state.utility_version[layer] += 1
        state.tau[:] = random.integers(1, 4, LAYERS)
        state.clock[LAYER] = random.integers(-1, LAYERS)
        state.clock[PASS] = 2
        ledger.slot_readers[:] = random.random(SLOTS) < 0.2
        self.observe(max(0, int(state.clock[LAYER])))

    def observe(self, layer: int) -> None:
        observation = self.observation
        observation.counts[:] = self.random.integers(0, 3, EXPERTS)
        active = np.flatnonzero(observation.counts)
        observation.active[: len(active)] = active
        observation.size[0] = len(active)
        if self.state.clock[LAYER] >= 0:
            self.state.stamp[layer, self.state.stamp[layer] == self.state.clock[PASS]] = 0
            self.state.stamp[layer, active] = self.state.clock[PASS]
            self.state.utility_version[layer] += 1

    def new_plan(self, credits: int) -> None:
        self.plan = new_plan(LAYERS, EXPERTS, SLOTS)
        self.plan.credits[0] = credits
        self.plan.taken[:] = self.random.random(SLOTS) < 0.3
        self.plan.placement[:] = self.random.integers(0, 5, EXPERTS)

    # What the kernels have to find, looked for everywhere.

    def free(self) -> int:
        found = np.flatnonzero((self.ledger.slot_state == FREE) & (self.plan.taken == 0))
        return int(found[0]) if len(found) else NOWHERE

    def evictable(self, below_tau: bool) -> list[tuple]:
        """(utility, -distance, stamp, slot) of what may be given up, the first to go first."""
        ledger, found = self.ledger, []
        for slot in range(SLOTS):
            free_to_go = ledger.slot_state[slot] == READY and ledger.slot_readers[slot] == 0
            if not free_to_go or self.plan.taken[slot]:
                continue
            layer, expert = divmod(int(ledger.slot_expert[slot]), EXPERTS)
            utility = float(self.state.utility[layer, expert])
            if below_tau and utility >= self.state.tau[layer]:
                continue
            stamp = int(self.state.stamp[layer, expert])
            found.append((utility, -self.distance(layer), stamp, slot))
        return sorted(found)

    def distance(self, layer: int) -> int:
        ahead = layer - int(self.state.clock[LAYER])
        return ahead if ahead > 0 else ahead + LAYERS

    def victim(self, limit: float, below_tau: bool) -> int:
        if self.free() != NOWHERE:
            return self.free()
        found = self.evictable(below_tau)
        return found[0][3] if found and found[0][0] < limit else NOWHERE

    def floor(self, below_tau: bool) -> float:
        if self.free() != NOWHERE:
            return -FLOOR_OF_NOTHING
        found = self.evictable(below_tau)
        return found[0][0] if found else FLOOR_OF_NOTHING

    def missing(self) -> list[tuple[int, int]]:
        slots = self.ledger.expert_slot.reshape(LAYERS, EXPERTS)
        return [(int(a), int(b)) for a, b in np.argwhere(slots == NOWHERE)]

    def copied_already(self, layer: int, expert: int) -> bool:
        running = layer == self.state.clock[LAYER]
        return bool(running and self.plan.placement[expert] >= api.FETCH)

    def prefetched(self, candidates: list[tuple], margin: float, below_tau: bool) -> list[tuple]:
        """(expert, slot) of the best candidates (-priority, rank, key) while credits last."""
        taken, chosen = self.plan.taken.copy(), []
        for _, _, key in sorted(candidates)[:PREFETCH_LIMIT]:
            if len(chosen) == self.plan.credits[0]:
                break
            slot = self.victim(self.state.flat_utility[key] - margin, below_tau)
            if slot != NOWHERE:
                chosen.append((key, slot))
                self.plan.taken[slot] = 1
        self.plan.taken[:] = taken
        return chosen

    def planned(self) -> list[tuple]:
        number = int(self.plan.size[1])
        keys, slots = self.plan.prefetch_expert[:number], self.plan.prefetch_slot[:number]
        return list(zip(keys.tolist(), slots.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_victim_and_floor_of_the_pool(seed: int) -> None:
    pool = Pool(np.random.default_rng(seed))
    evicted = 0
    for _ in range(400):
        pool.change()
        pool.new_plan(4)
        for below_tau in (False, True):
            limit = float(pool.random.choice([0.0, 1.0, 2.0, 3.0, np.inf]))
            slot = victim_anywhere(pool.ledger, pool.state, pool.plan, limit, below_tau)
            assert slot == pool.victim(limit, below_tau)
            floor = lowest_anywhere(pool.ledger, pool.state, pool.plan, below_tau, FLOOR_OF_NOTHING)
            assert floor == pool.floor(below_tau)
            evicted += slot != NOWHERE and pool.free() == NOWHERE
    assert evicted > 100


@pytest.mark.parametrize("proximity", [0.0, 0.5])
def test_prefetches_by_utility(proximity: float) -> None:
    pool = Pool(np.random.default_rng(7))
    several = 0
    for _ in range(400):
        pool.change()
        pool.new_plan(int(pool.random.integers(1, 6)))
        below_tau, margin = bool(pool.random.integers(2)), float(pool.random.choice([0.0, 0.5]))
        floor = max(pool.floor(below_tau), 0.0)
        candidates = []
        for layer, expert in pool.missing():
            utility, distance = float(pool.state.utility[layer, expert]), pool.distance(layer)
            least = float(pool.state.tau[layer]) if below_tau else 0.0
            if utility <= floor + margin or utility < least or pool.copied_already(layer, expert):
                continue
            priority = utility * (1.0 - proximity * (distance - 1) / LAYERS)
            candidates.append((-priority, distance, layer * EXPERTS + expert))
        expected = pool.prefetched(candidates, margin, below_tau)
        move_by_utility(pool.ledger, pool.state, pool.plan, below_tau, proximity, margin)
        assert pool.planned() == expected
        several += len(expected) > 1
    assert several > 20


def test_admitted_misses() -> None:
    pool = Pool(np.random.default_rng(9))
    at_layer = drafting = 0
    for _ in range(600):
        pool.change()
        pool.new_plan(int(pool.random.integers(1, 6)))
        running, candidates = int(pool.state.clock[LAYER]), []
        since = pool.state.clock[PASS] - (running < 0)
        for layer, expert in pool.missing():
            if running not in (-1, layer) or pool.state.stamp[layer, expert] != since:
                continue
            rows = int(pool.observation.counts[expert]) if running >= 0 else 0
            if not pool.copied_already(layer, expert):
                utility = float(pool.state.utility[layer, expert])
                candidates.append((-utility, -rows, layer * EXPERTS + expert))
        expected = pool.prefetched(candidates, 0.0, False)
        admit_misses(pool.ledger, pool.state, pool.observation, pool.plan)
        assert pool.planned() == expected
        at_layer += running >= 0 and len(expected) > 0
        drafting += running < 0 and len(expected) > 1
    assert at_layer > 50 and drafting > 10
