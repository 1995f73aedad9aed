"""The two engines, whose physics was written twice, play every run alike, to the nanosecond."""

from functools import lru_cache
from pathlib import Path

import pytest

from policies.zoo import ZOO
from simulator.compiled import simulate_compiled
from simulator.reference import simulate
from simulator.requirements import rows_needed
from simulator.settings import SimulationSettings
from tests.simulator.equal_runs import assert_equal_outcomes, assert_equal_runs
from tests.simulator.scenarios import Scenario, long_costs, outcome, scenario
from traces.reader import open_trace
from traces.replay import open_replay

ROOT = Path(__file__).parents[2]
BUNDLED = sorted(path.parent for path in (ROOT / "traces" / "data").rglob("manifest.json"))
SCENARIOS = 12  # for each policy of the zoo
COMPOSITIONS = 128


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory):
    """Scenario number -> Scenario, each trace written once."""
    folder = tmp_path_factory.mktemp("scenarios")
    return lru_cache(maxsize=None)(lambda seed: scenario(seed, folder))


@pytest.mark.parametrize("name", [*ZOO, "fetch_predicted"])
def test_random_scenarios(name: str, play) -> None:
    layers = 0
    for seed in range(SCENARIOS):
        run: Scenario = play(seed)
        expected = outcome(simulate, name, run, seed)
        assert_equal_outcomes(expected, outcome(simulate_compiled, name, run, seed))
        if not isinstance(expected, str):
            layers += len(expected.layers)
    assert layers > 150


def test_random_compositions(play) -> None:
    refused = 0
    for seed in range(COMPOSITIONS):
        run = play(seed % 48)
        expected = outcome(simulate, "composed", run, seed)
        assert_equal_outcomes(expected, outcome(simulate_compiled, "composed", run, seed))
        refused += isinstance(expected, str)
    assert refused < COMPOSITIONS // 4


@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.name)
@pytest.mark.parametrize("name", ZOO)
def test_bundled_traces(path: Path, name: str) -> None:
    trace = open_trace(path)
    replay = open_replay(trace, acceptance=0.75 if trace.manifest.kind == "text" else None)
    gamma = replay.fixed_gamma or min(4, replay.gamma_limit)
    total = replay.model.layers * replay.model.experts
    settings = SimulationSettings(gamma=gamma, slots=max(1, total // 4), requests=2)
    costs = long_costs(rows_needed(replay, gamma))
    expected = simulate(replay, ZOO[name](), costs, settings)
    assert_equal_runs(expected, simulate_compiled(replay, ZOO[name](), costs, settings))


@pytest.mark.skipif(bool(BUNDLED), reason="bundled traces are tested above")
def test_bundled_traces_exist() -> None:
    pytest.skip("no trace is bundled in traces/data")
