"""`spac bench` in small: every section runs and its files say what was measured. No clock is
asserted: only what must hold however fast the machine is."""

import importlib.util
import json
import math
from pathlib import Path

import pytest

from experiments.bench_report import markdown
from experiments.benchmarks import caches
from experiments.benchmarks.decisions import Timings, time_decisions
from experiments.benchmarks.host import cpu_name
from experiments.benchmarks.layers import assigned_layer, threshold_layer
from experiments.benchmarks.measures import SIZES, Bench, Measure
from experiments.benchmarks.scene import make_scene
from experiments.benchmarks.solvers import assign, assign_by_cbc, threshold, threshold_by_cbc
from experiments.benchmarks.timing import core_seconds, spread
from experiments.commands import COMMANDS
from experiments.configuration import compose_config
from experiments.decision_file import choose_decision
from experiments.machine import machine_from
from experiments.policy_choice import choose_policies
from policies.balancers.assignment_greedy import solve_by_gain, solve_greedily
from tests.experiments.conftest import Spac

FOLDER = Path("outputs/bench/latest")


def benched(spac: Spac, *words: str) -> dict:
    outcome = spac("bench", "size=small", *words)
    assert outcome.code == 0, outcome.err
    return json.loads((FOLDER / "bench.json").read_text())


def by_name(result: dict) -> dict[str, dict]:
    assert all(math.isfinite(one["value"]) for one in result["measures"])
    return {one["what"]: one for one in result["measures"]}


def test_engines(spac: Spac) -> None:
    found = by_name(benched(spac, "only=engines"))
    for name in ("spac", "lru_cpu"):
        assert found[f"{name}: expert activations per second and core, full log"]["value"] > 0
        assert found[f"{name}: times as fast as the SimPy reference"]["unit"] == "x"
    assert (FOLDER / "bench.md").read_text().count("\n| engines |") == len(found)


@pytest.mark.skipif(
    importlib.util.find_spec("libcachesim") is None, reason="libcachesim is not installed"
)
def test_caches_hit_as_often_as_those_of_libcachesim(spac: Spac) -> None:
    found = by_name(benched(spac, "only=[caches]"))
    for name in ("LRU", "LFU", "Belady"):
        assert found[f"{name}: difference in hits"]["value"] == 0


def test_a_section_that_cannot_run_is_left_out_with_its_reason(
    spac: Spac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches.importlib.util, "find_spec", lambda name: None)
    result = benched(spac, "only=[caches]")
    assert "libcachesim is not installed: pip install" in result["left_out"]["caches"]
    assert result["measures"] == []
    assert "left out: libcachesim is not installed" in (FOLDER / "bench.md").read_text()


def test_solvers(spac: Spac) -> None:
    found = by_name(benched(spac, "only=solvers"))
    assert found["threshold of 128 experts: optima that differ from CBC's"]["value"] == 0
    assert found["assignment of 12 experts: optima that differ from CBC's"]["value"] == 0
    for way in ("by workload", "by gain"):
        assert found[f"greedy {way}: join above the optimum, mean"]["value"] >= 0


def test_decisions_leave_a_file_that_engines_charge(spac: Spac) -> None:
    names = ["spac", "lru_cpu", "belady", "n_cpu_moe_plain", "ours"]
    result = benched(spac, "only=decisions", f"policy=[{','.join(names)}]")
    assert len(result["measures"]) == len(names)
    times = choose_decision(FOLDER / "decisions.yaml")
    assert times is not None and set(times.policies) == set(names)
    assert times.shape["experts"] == 16 and times.cpu == cpu_name()
    for name, one in times.policies.items():
        assert 0 < one.layer_ns <= one.layer_p99_ns and 0 < one.leave_ns <= one.leave_p99_ns
        assert (one.draft_ns > 0) == (name != "n_cpu_moe_plain")  # which never drafts
    assert (FOLDER / "decisions.png").stat().st_size > 10_000
    outcome = spac("simulate", "trace=code", "requests=2", f"decision={FOLDER / 'decisions.yaml'}")
    assert outcome.code == 0, outcome.err


def test_start(spac: Spac) -> None:
    found = by_name(benched(spac, "only=start"))
    assert found["spac --help"]["value"] > 0 and found["import numba"]["value"] > 0
    assert any("kernels on disk" in name for name in found)


def test_the_grid_gives_the_same_bytes_with_two_processes(spac: Spac) -> None:
    found = by_name(benched(spac, "only=grid"))
    assert found["tables that differ"]["value"] == 0
    assert found["one process: a cell"]["note"] == "6 cells"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["only=cache"], "unknown section 'cache', did you mean caches?"),
        (["size=huge"], "unknown size 'huge'"),
        (["policy=[nothing]"], "unknown policy 'nothing'"),
        (["only=caches", "copy_to=kept"], "leave only= out"),
    ],
)
def test_refusals(spac: Spac, words: list[str], expected: str) -> None:
    assert expected in spac("bench", *words).error
    assert not Path("outputs").exists()


def test_a_missed_goal_is_called_missed() -> None:
    slow = Measure("some", "way", 30.0, "us", "at most", 20.0)
    assert slow.met is False
    assert Measure("some", "way", 30.0, "us", "at least", 20.0).met is True
    assert Measure("some", "way", 30.0, "us").met is None
    result = {
        "size": "full", "load_average_after": [0.1], "left_out": {},
        "host": {
            "cpu": "X", "cores": 2, "memory_gib": 4, "versions": {"numba": "1"},
            "load_average": [0.2],
        },
        "measures": [{**vars(slow), "met": False}],
    }  # fmt: skip
    assert "| some | way | 30 us | at most 20, missed |  |" in markdown(result)


def test_spread_takes_timings_that_were_taken() -> None:
    assert (spread([5]).median_ns, spread([5]).p99_ns) == (5, 5)
    times = list(range(1, 201))
    assert (spread(times).median_ns, spread(times).p99_ns) == (101, 199)


def test_core_seconds_is_the_median_over_repeats() -> None:
    calls: list[int] = []

    def call() -> int:
        calls.append(1)
        return len(calls)

    seconds, last = core_seconds(call, 5)
    assert seconds >= 0 and last == len(calls) == 5


def bench_of(folder: Path) -> Bench:
    machine = machine_from(compose_config(COMMANDS["bench"], []))
    return Bench(machine, SIZES["small"], [], folder)


def test_warm_up_passes_are_not_timed(tmp_path: Path) -> None:
    scene = make_scene(bench_of(tmp_path), 6)
    (choice,) = choose_policies(["lru_cpu"])
    timings = time_decisions(choice, scene)
    layers = scene.replay.model.layers
    assert len(timings.layer) == len(timings.leave) > 0
    assert len(timings.layer) % layers == 0
    assert isinstance(timings, Timings) and len(timings.draft) > 0


def test_instances_have_the_size_they_claim_and_greedy_never_wins() -> None:
    for seed in range(60):
        layer = assigned_layer(seed)
        assert layer.available.sum() == 40
        assert all(len(part) == 40 for part in layer.each())
        assert min(assign(layer, solve_greedily), assign(layer, solve_by_gain)) >= assign(layer)
        levels = threshold_layer(seed)
        assert levels.members.sum() == 128
        assert (levels.missing <= levels.members).all()


def test_the_timed_solvers_find_the_optimum_of_cbc() -> None:
    for seed in range(3):
        assert threshold(threshold_layer(seed)) == threshold_by_cbc(threshold_layer(seed))
        assert assign(assigned_layer(seed, 8)) == assign_by_cbc(assigned_layer(seed, 8))
