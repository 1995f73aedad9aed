"""The best hit rate that demand copies allow, from a run log: no policy that copies only what a
layer needs finds more."""

from pathlib import Path

import numpy as np
import pytest

from simulator.compiled import simulate_compiled
from simulator.reference import simulate
from tests.simulator.scenarios import outcome, scenario
from tests.simulator.scenes import ListReplay, Scripted, one_row, round_costs, settings
from traces.metrics import metrics
from traces.runlog import RunLog
from traces.window_caches import belady_of_run

ON_DEMAND = ("lru_fetch", "stream_active", "lru_cpu", "lfu_cpu", "fiddler", "belady", "freetoken")


def test_no_demand_policy_finds_more(tmp_path: Path) -> None:
    compared, beaten = 0, []
    for seed in range(30):
        run = scenario(seed, tmp_path)
        for name in ON_DEMAND:
            log = outcome(simulate_compiled, name, run, seed)
            if not isinstance(log, RunLog) or run.settings.cold_start:
                continue
            best = belady_of_run(log)
            if np.isnan(best):
                continue
            assert metrics(log).hit_rate_per_expert <= best + 1e-12, (seed, name)
            compared += 1
            beaten.append(metrics(log).hit_rate_per_expert < best)
    assert compared > 60 and any(beaten)


def test_a_hand_made_run() -> None:
    """Two slots; experts 0 and 1, then 2, then 0 and 1 again: the pool may begin with 0 and 1."""
    rows = [one_row([0, 1]), one_row([2, 3]), one_row([0, 1])]
    log = simulate(ListReplay([rows], experts=4), Scripted(), round_costs(), settings(slots=2))
    assert belady_of_run(log) == pytest.approx(4 / 6)


def test_warm_up_is_not_counted() -> None:
    requests = [[one_row([0, 1])], [one_row([2, 3])]]
    chosen = settings(slots=1, warmup_requests=1)
    log = simulate(ListReplay(requests, experts=4), Scripted(), round_costs(), chosen)
    assert belady_of_run(log) == pytest.approx(1 / 2)
    all_warm = settings(slots=1, warmup_requests=2)
    log = simulate(ListReplay(requests, experts=4), Scripted(), round_costs(), all_warm)
    assert np.isnan(belady_of_run(log))
