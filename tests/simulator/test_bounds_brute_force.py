"""The bounds against every schedule: all placements and all prefetches of a tiny run, each really
played by the reference engine."""

import itertools

import numpy as np
import pytest

from policies.api import CPU, FETCH, GPU, STREAM, Copy, LayerPlan
from policies.costs import CostTable
from policies.session import IllegalPlan
from simulator.bounds import decode_bound
from simulator.exact_bound import lower_bound
from simulator.reference import simulate
from simulator.settings import SimulationSettings
from tests.simulator.scenes import ListReplay, Scripted, one_row, round_costs, settings

REPLAY = ListReplay([[one_row([0, 1]), one_row([0, 2])]], experts=3)
WAYS = ("stay", "stream", "fetch")
NOTHING_HELPS = {"decision_layer_ns": 0, "decision_leave_ns": 0, "contention": 1024}


class Chosen(Scripted):
    """Plays `ways` for the two active experts of each pass, then prefetches `admitted` (-1: none)
    into the one slot."""

    name = "chosen"

    def __init__(self, choices: tuple[tuple[tuple[str, str], int], ...]) -> None:
        super().__init__()
        self.choices = choices

    def enter_layer(self, routing, view) -> LayerPlan:
        ways, _ = self.choices[self.number]
        placement, demand = {}, []
        for expert, way in zip(sorted(set(routing.experts.ravel().tolist())), ways, strict=True):
            if way == "stay":
                placement[expert] = GPU if view.ready(expert) else CPU
            elif way == "stream":
                placement[expert] = STREAM
                demand.append(Copy(expert, -1))
            else:
                placement[expert] = FETCH
                demand.append(Copy(expert, 0))
        return LayerPlan(placement, tuple(demand))

    def leave_layer(self, layer, view) -> tuple[Copy, ...]:
        _, admitted = self.choices[self.number]
        return () if admitted < 0 else (Copy(admitted, 0),)


def fastest(costs: CostTable, chosen: SimulationSettings) -> tuple[int, int]:
    """(decode time of the fastest legal schedule, number of legal ones)."""
    one_pass = list(itertools.product(itertools.product(WAYS, repeat=2), (-1, 0, 1, 2)))
    times = []
    for choices in itertools.product(one_pass, repeat=2):
        try:
            log = simulate(REPLAY, Chosen(choices), costs, chosen)
        except IllegalPlan:
            continue
        times.append(int((log.passes["end_ns"] - log.passes["begin_ns"]).sum()))
    return min(times), len(times)


@pytest.mark.parametrize("lanes", ["concurrent", "serial"])
@pytest.mark.parametrize("copy_ns", [40, 900])
def test_no_schedule_at_all_is_below_a_bound(lanes: str, copy_ns: int) -> None:
    costs = round_costs(copy_ns=copy_ns, **NOTHING_HELPS)
    chosen = settings(slots=1, staging=1, lanes=lanes)
    best, legal = fastest(costs, chosen)
    exact = lower_bound(REPLAY, costs, chosen)
    quick = decode_bound(REPLAY, costs, chosen)
    assert legal > 200
    assert quick <= exact <= best
    assert exact > 0.4 * best and quick > 0.4 * best


def test_the_program_is_tight_where_nothing_can_be_split() -> None:
    """Copies that take for ever and a CPU faster than the GPU at everything: the best schedule is
    the one the program finds, up to the shares of the GPU lane."""
    tiny = np.where(np.arange(13) > 0, 1, 0).astype(np.int64)
    costs = round_costs(copy_ns=10**7, gpu_ns=tiny * 10**6, cpu_ns=tiny * 500, **NOTHING_HELPS)
    chosen = settings(slots=1, staging=1)
    best, _ = fastest(costs, chosen)
    assert 0.99 * best < lower_bound(REPLAY, costs, chosen) <= best
