"""The fast bounds: never above the exact program, never above a run, and close to the optimum."""

import itertools
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

from policies.parts import FixedWindow
from policies.zoo import ZOO
from simulator.bound_program import block_program
from simulator.bound_stages import PassStages, pass_stages
from simulator.bounds import decode_bound
from simulator.compiled import simulate_compiled
from simulator.exact_bound import lower_bound, solve, window_lower_bound
from simulator.expert_prices import best_value, priced_value
from simulator.relaxed_bound import relaxed_bound
from simulator.relaxed_request import relaxed_request
from simulator.requirements import rows_needed
from simulator.settings import SimulationSettings
from tests.simulator.scenarios import Scenario, long_costs, outcome, scenario
from traces.reader import open_trace
from traces.replay import open_replay
from traces.runlog import RunLog
from traces.runlog_schema import DECODE_PHASE

ROOT = Path(__file__).parents[2]
BUNDLED = sorted(path.parent for path in (ROOT / "traces" / "data").rglob("manifest.json"))
SEEDS = range(40)


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("scenarios")
    return lru_cache(maxsize=None)(lambda seed: scenario(seed, folder))


def stages_of(run: Scenario, request: int, gammas: list[int] | None = None) -> list[PassStages]:
    """The passes of a request at the run's window, or at those of `gammas` in turn."""
    stages, start = [], run.replay.first(request)
    chosen = itertools.repeat(run.settings.gamma) if gammas is None else iter(gammas)
    while start < run.replay.end(request):
        window = run.replay.window(request, start, next(chosen))
        early = run.settings.launch == "early"
        stages.append(pass_stages(window, run.replay.model, run.costs, early))
        start += window.committed
    return stages


def program_of(run: Scenario, stages: list[PassStages]):
    return block_program(
        stages, capacity_of(run), copy_of(run), serial=run.settings.lanes == "serial"
    )


def capacity_of(run: Scenario) -> int:
    return run.settings.slots + run.settings.staging


def copy_of(run: Scenario) -> int:
    return run.costs.copy_latency_ns + run.costs.copy_ns


def fast(run: Scenario, stages: list[PassStages], steps: int = 200) -> int:
    serial = run.settings.lanes == "serial"
    return relaxed_bound(relaxed_request(stages), capacity_of(run), copy_of(run), serial, steps)


def relaxed_optimum(run: Scenario, stages: list[PassStages]) -> float:
    """The relaxed program as its docstring writes it, given to HiGHS."""
    request = relaxed_request(stages)
    passes, layers = len(stages), len(request.fixed_ns)
    activations, experts = len(request.pass_of), len(request.begin) - 1
    r0, f0 = 0, experts * passes
    u0, t0 = 2 * experts * passes, 2 * experts * passes + activations
    size = t0 + layers
    rows: list[np.ndarray] = []
    limits: list[float] = []

    def add(terms: list[tuple[int, float]], limit: float) -> None:
        row = np.zeros(size)
        for place, value in terms:
            row[place] += value
        rows.append(row)
        limits.append(limit)

    for e in range(experts):
        for p in range(passes - 1):
            r, f = r0 + e * passes + p, f0 + e * passes + p
            add([(r + 1, 1), (r, -1), (f, -1)], 0)
        for i in range(request.begin[e], request.begin[e + 1]):
            p = request.pass_of[i]
            add([(u0 + i, 1), (r0 + e * passes + p, -1), (f0 + e * passes + p, -1)], 0)
    for p in range(passes):
        add([(r0 + e * passes + p, 1) for e in range(experts)], capacity_of(run))
        copied = [(f0 + e * passes + p, float(copy_of(run))) for e in range(experts)]
        of_pass = range(p * layers // passes, (p + 1) * layers // passes)
        add(copied + [(t0 + k, -1) for k in of_pass], request.idle_ns[p])
    for k in range(layers):
        mine = np.flatnonzero(request.layer_of == k)
        gpu = [(u0 + i, request.gpu_ns[i]) for i in mine]
        cpu = [(u0 + i, -request.cpu_ns[i]) for i in mine]
        total = request.cpu_ns[mine].sum()
        if run.settings.lanes == "serial":
            add([*gpu, *cpu, (t0 + k, -1)], -request.fixed_ns[k] - total)
        else:
            add([*gpu, (t0 + k, -1)], -request.fixed_ns[k])
            add([*cpu, (t0 + k, -1)], -request.fixed_ns[k] - total)
    objective = np.zeros(size)
    objective[t0:] = 1
    bounds = [(0, 1)] * (experts * passes) + [(0, None)] * (experts * passes)
    bounds += [(0, 1)] * activations + [(0, None)] * layers
    solved = scipy.optimize.linprog(objective, np.array(rows), limits, bounds=bounds)
    assert solved.status == 0
    return float(solved.fun + request.idle_ns.sum())


@pytest.mark.parametrize("seed", SEEDS)
def test_relaxed_is_below_exact_and_both_below_every_run(seed: int, play) -> None:
    run: Scenario = play(seed)
    played = run.replay.request_ids[: run.settings.requests]
    blocks = [stages_of(run, request) for request in played]
    exact = sum(solve(program_of(run, stages)) for stages in blocks)
    assert sum(fast(run, stages) for stages in blocks) <= exact
    for name in ("belady", "window_oracle", "lru_cpu", "stream_active", "dali_exact", "spac"):
        log = outcome(simulate_fixed, name, run, seed)
        if isinstance(log, RunLog):
            assert exact <= decode_ns(log)


def simulate_fixed(replay, policy, costs, settings) -> RunLog:
    """The compiled engine, with the run's own window."""
    policy.window = FixedWindow()
    return simulate_compiled(replay, policy, costs, settings)


def decode_ns(log: RunLog, measured: bool = False) -> int:
    passes = log.passes[log.passes["phase"] == DECODE_PHASE]
    if measured:
        passes = passes[~passes["warmup"]]
    return int((passes["end_ns"] - passes["begin_ns"]).sum())


@pytest.mark.parametrize("seed", range(12))
def test_the_search_comes_close_to_the_optimum_and_no_prices_exceed_it(seed: int, play) -> None:
    run = play(seed)
    stages = stages_of(run, run.replay.request_ids[0])[:4]
    optimum = relaxed_optimum(run, stages)
    assert fast(run, stages, 2000) <= optimum * (1 + 1e-9) + 1
    assert fast(run, stages, 2000) >= 0.97 * optimum - 1
    request = relaxed_request(stages)
    size = 2 * len(stages) + len(request.fixed_ns)
    serial = run.settings.lanes == "serial"
    random = np.random.default_rng(seed)
    for scale in (0.01, 0.1, 1.0):
        prices = random.random(size) * scale
        value = priced_value(
            request, float(capacity_of(run)), float(copy_of(run)), serial, prices, np.zeros(size)
        )
        assert value <= optimum * (1 + 1e-9) + 1


def test_the_slope_is_that_of_the_value(play) -> None:
    run = play(3)
    request = relaxed_request(stages_of(run, run.replay.request_ids[0]))
    size = 2 * len(request.idle_ns) + len(request.fixed_ns)
    prices = np.random.default_rng(0).random(size) * 0.5
    slope, unused = np.zeros(size), np.zeros(size)
    for serial in (False, True):
        here = priced_value(request, 3.0, 500.0, serial, prices, slope)
        for place in range(size):
            moved = prices.copy()
            moved[place] += 1e-6
            there = priced_value(request, 3.0, 500.0, serial, moved, unused)
            assert (there - here) / 1e-6 == pytest.approx(slope[place], rel=1e-3, abs=1)


def test_a_better_start_cannot_lower_the_value(play) -> None:
    run = play(5)
    request = relaxed_request(stages_of(run, run.replay.request_ids[0]))
    size = 2 * len(request.idle_ns) + len(request.fixed_ns)
    prices = np.full(size, 0.25)
    found = [best_value(request, 3.0, 500.0, False, prices.copy(), steps) for steps in (1, 50, 400)]
    assert found == sorted(found)


def window_paths(run: Scenario, request: int) -> list[list[int]]:
    """All sequences of windows that finish the request."""

    def onwards(start: int) -> list[list[int]]:
        if start >= run.replay.end(request):
            return [[]]
        return [
            [gamma, *rest]
            for gamma in range(run.settings.gamma + 1)
            for rest in onwards(start + run.replay.window(request, start, gamma).committed)
        ]

    return onwards(run.replay.first(request))


def short_runs(play) -> list[Scenario]:
    """Scenarios whose first request has few enough paths to try all."""
    chosen = []
    for seed in range(120):
        run = play(seed)
        request = run.replay.request_ids[0]
        tokens = run.replay.end(request) - run.replay.first(request)
        if run.replay.fixed_gamma is None and run.settings.gamma > 0 and 1 < tokens <= 5:
            chosen.append(replace(run, settings=replace(run.settings, requests=1)))
    return chosen[:6]


def test_window_bounds_are_below_the_best_of_all_paths(play) -> None:
    runs = short_runs(play)
    assert len(runs) >= 4
    for run in runs:
        request = run.replay.request_ids[0]
        paths = window_paths(run, request)
        best = min(solve(program_of(run, stages_of(run, request, path))) for path in paths)
        settings = replace(run.settings, warmup_requests=0)
        quick = decode_bound(run.replay, run.costs, settings, any_window=True)
        assert 0.5 * best < quick <= best
        assert window_lower_bound(run.replay, run.costs, settings, [request]) <= best
        exact = decode_bound(run.replay, run.costs, settings, any_window=True, method="lp")
        assert quick <= exact <= best


@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.name)
def test_bundled_traces(path: Path) -> None:
    trace = open_trace(path)
    replay = open_replay(trace, acceptance=0.75 if trace.manifest.kind == "text" else None)
    gamma = replay.fixed_gamma or min(4, replay.gamma_limit)
    total = replay.model.layers * replay.model.experts
    settings = SimulationSettings(gamma=gamma, slots=max(1, total // 4), requests=2)
    run = Scenario(replay, long_costs(rows_needed(replay, gamma)), settings)
    block = stages_of(run, replay.request_ids[1])[:2]
    assert 0.9 * solve(program_of(run, block)) < fast(run, block) <= solve(program_of(run, block))
    fixed, free = (decode_bound(replay, run.costs, settings, any_window=any_) for any_ in (0, 1))
    assert free <= fixed
    for name, make in ZOO.items():
        policy = make()
        own = policy.window is not None and not isinstance(policy.window, FixedWindow)
        other = isinstance(policy.window, FixedWindow) and policy.window.choose(gamma) != gamma
        log = simulate_compiled(replay, policy, run.costs, settings)
        assert (free if own or other else fixed) <= decode_ns(log, measured=True), name


def test_more_slots_and_bandwidth_do_not_raise_a_bound(play) -> None:
    """Exactly so for the program; the search for prices may miss its optimum by a little."""
    for seed in (0, 4, 7):
        run = play(seed)
        stages = stages_of(run, run.replay.request_ids[0])
        slots = [replace(run, settings=replace(run.settings, slots=n)) for n in (1, 2, 4, 8)]
        links = [replace(run, costs=run.costs._replace(copy_ns=n)) for n in (4000, 900, 200, 1)]
        for runs in (slots, links):
            exact = [solve(program_of(one, stages)) for one in runs]
            assert all(later <= sooner + 1 for sooner, later in itertools.pairwise(exact))
            quick = [fast(one, stages) for one in runs]
            assert all(later <= 1.02 * sooner + 1 for sooner, later in itertools.pairwise(quick))


def test_warm_up_is_not_counted(play) -> None:
    run = next(play(seed) for seed in SEEDS if len(play(seed).replay.request_ids) == 3)
    settings = replace(run.settings, requests=None, warmup_requests=1)
    all_, rest = (
        decode_bound(run.replay, run.costs, replace(settings, warmup_requests=n)) for n in (0, 1)
    )
    first = decode_bound(run.replay, run.costs, replace(settings, warmup_requests=0, requests=1))
    assert all_ == first + rest
    exact = decode_bound(run.replay, run.costs, settings, method="lp")
    assert exact >= lower_bound(run.replay, run.costs, settings, run.replay.request_ids[1:])
