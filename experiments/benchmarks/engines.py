"""Section engines: expert activations that the compiled engine plays per second and core, beside
the SimPy reference on the same runs."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from experiments.benchmarks.measures import Bench, Measure
from experiments.benchmarks.scene import Scene, make_scene
from experiments.benchmarks.timing import core_seconds
from policies.zoo import ZOO
from simulator.compiled import simulate_compiled
from simulator.reference import simulate
from simulator.totals import Totals, simulate_totals
from traces.runlog import RunLog

SECTION = "engines"
GOALS = {"spac": 3.5, "lru_cpu": 6.0}
MILLION = 1e6


def measure_engines(bench: Bench) -> Iterator[Measure]:
    """Speed, time of 1,000 passes, ratio to the reference, for SpAc and LRU."""
    scene, short = make_scene(bench, bench.size.passes), make_scene(bench, bench.size.few_passes)
    for name, goal in GOALS.items():
        # Kernels of both are compiled now, or loaded from the disk.
        play(short, name), play_reference(make_scene(bench, 1), name)
        seconds, log = core_seconds(partial(play, scene, name), bench.size.repeats)
        rate, passes = activations(scene, log) / seconds / MILLION, len(log.passes)
        yield Measure(
            SECTION, f"{name}: expert activations per second and core, full log", rate, "million",
            "at least", goal, note=f"{passes} passes",
        )  # fmt: skip
        yield Measure(
            SECTION, f"{name}: 1,000 passes", seconds * 1000 / passes, "s",
            *(("at most", 1.0) if name == "spac" else ()),
        )  # fmt: skip
        lean, _ = core_seconds(partial(play_totals, scene, name), bench.size.repeats)
        yield Measure(
            SECTION, f"{name}: the same, sums alone without a log",
            activations(scene, log) / lean / MILLION, "million",
        )  # fmt: skip
        yield ratio_to_reference(short, name, bench.size.repeats)


def ratio_to_reference(scene: Scene, name: str, repeats: int) -> Measure:
    """Time of the reference over that of the compiled engine, on the same short run."""
    compiled, _ = core_seconds(partial(play, scene, name), repeats)
    reference, _ = core_seconds(partial(play_reference, scene, name), 1)
    return Measure(
        SECTION, f"{name}: times as fast as the SimPy reference", reference / compiled, "x",
        "at least", 20.0,
    )  # fmt: skip


def play(scene: Scene, name: str) -> RunLog:
    """One run of the compiled engine."""
    policy: Any = ZOO[name]()
    return simulate_compiled(scene.replay, policy, scene.costs, scene.settings)


def play_totals(scene: Scene, name: str) -> Totals:
    """The same run, summed up as it goes."""
    return simulate_totals(scene.replay, ZOO[name](), scene.costs, scene.settings)


def play_reference(scene: Scene, name: str) -> RunLog:
    """The same run by the SimPy engine."""
    return simulate(scene.replay, ZOO[name](), scene.costs, scene.settings)


def activations(scene: Scene, log: RunLog) -> int:
    """Expert activations in a run: rows x layers x top-k."""
    model = scene.replay.model
    return int(log.passes["rows"].sum()) * model.layers * model.top_k
