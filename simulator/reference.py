"""The reference engine: SimPy processes for link, host, GPU lane and CPU lane, in integer ns.

It is written to be read. What it plays is stated in the package's docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import simpy

from policies.api import Shape
from policies.costs import CostTable
from policies.session import Session
from simulator.backend import LinkBackend
from simulator.clock import Clock
from simulator.driver import Driver
from simulator.foresight import clairvoyant_gamma, future_of, is_clairvoyant
from simulator.host import Host
from simulator.lanes import Lanes
from simulator.link import Link
from simulator.requirements import check_requirements, settle_wishes
from simulator.run_labels import run_info
from simulator.run_recorder import RunRecorder
from simulator.settings import RunLabels, SimulationSettings
from traces.replay import Replay
from traces.runlog import RunLog, RunLogBuilder, read_runlog
from traces.window import Window

ENGINE = "reference"
Progress = Callable[[int, int], None]


def simulate(
    replay: Replay,
    policy: Any,
    costs: CostTable,
    settings: SimulationSettings,
    labels: RunLabels | None = None,
    path: str | Path | None = None,
    progress: Progress | None = None,
) -> RunLog:
    """Play `replay` under `policy`, one clock for the whole run, requests back to back.

    `path`: new directory that the run log is written to as it grows (a killed run keeps its whole
    parts); without it the log stays in memory. `progress`: called after each pass with the
    committed tokens so far and in all. UserError if the trace cannot give what settings or policy
    ask for; policies.session.IllegalPlan if the policy breaks a rule.
    """
    costs.validate()
    check_requirements(replay, policy, costs, settings)
    observed = settle_wishes(replay, policy)
    only_gamma = clairvoyant_gamma(policy, settings.gamma) if is_clairvoyant(policy) else None
    requests = replay.request_ids[: settings.requests]
    builder = RunLogBuilder(
        run_info(replay, policy, costs, settings, labels or RunLabels(), ENGINE, observed), path
    )
    env = Clock()
    recorder = RunRecorder(builder, costs.expert_bytes)
    link = Link(env, costs.copy_latency_ns + costs.copy_ns, recorder.add_copy)
    lanes = Lanes(
        env, link, costs.contention, costs.dispatch_ns, costs.return_ns,
        early=settings.launch == "early", serial=settings.lanes == "serial",
    )  # fmt: skip
    driver = Driver(
        env, replay, costs, LinkBackend(env, settings.slots, settings.staging), Host(env, link),
        lanes, recorder, _reporter(replay, requests, progress), only_gamma,
    )  # fmt: skip
    played = env.process(_play(driver, policy, settings, requests))
    env.run()  # until the last copy has landed
    if not played.processed:
        raise RuntimeError("the engine stopped before the trace's end: a lane waits for ever")
    recorder.write_complete()
    if path is None:
        return builder.build()
    builder.close()
    return read_runlog(path)


def _play(
    driver: Driver, policy: Any, settings: SimulationSettings, requests: Sequence[int]
) -> Generator[simpy.Event, Any, None]:
    session = None
    for place, request in enumerate(requests):
        if session is None or settings.cold_start:
            played = [request] if settings.cold_start else requests
            session = _new_session(driver, policy, settings, session, played)
        warmup = place < settings.warmup_requests
        yield from driver.play_request(session, request, warmup)


def _new_session(
    driver: Driver,
    policy: Any,
    settings: SimulationSettings,
    before: Session | None,
    requests: Sequence[int],
) -> Session:
    """A session with empty slots; a clairvoyant `policy` is shown the passes of `requests`."""
    model = driver.replay.model
    shape = Shape(
        model.layers, model.experts, model.top_k, settings.slots, settings.staging,
        settings.gamma, settings.launch == "early",
    )  # fmt: skip
    session = Session(policy, shape, driver.costs, driver.backend)
    if before is not None:
        # Generations go on counting, so that the copies of a run never share (slot, generation).
        session.ledger.slot_generation[:] = before.ledger.slot_generation
        session.landed = before.landed
        driver.backend.forget()
    if driver.only_gamma is not None:
        policy.foresee(future_of(driver.replay, requests, driver.only_gamma))
    return session


def _reporter(
    replay: Replay, requests: Sequence[int], progress: Progress | None
) -> Callable[[Window], None]:
    if progress is None:
        return lambda window: None
    total = sum(replay.end(request) - replay.first(request) for request in requests)
    committed = 0

    def report(window: Window) -> None:
        nonlocal committed
        committed += window.committed
        progress(committed, total)

    return report
