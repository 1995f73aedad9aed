"""A comparison: the grid of workloads, settings and policies as jobs, each giving one row."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal
from typing import Any

import pandas as pd

from experiments.policy_choice import PolicyChoice
from experiments.setting import Setting
from experiments.trace_choice import Workload, open_workload
from policies.errors import UserError
from simulator.foresight import is_clairvoyant
from simulator.reference import simulate
from simulator.requirements import check_requirements
from traces.acceptance import Acceptance
from traces.metrics import metrics
from traces.runlog import RunLog

NO_SPECULATION = "no_speculation"


@dataclass(frozen=True)
class Job:
    """One run of the simulator. `label`: the policy's name in the table; `sweep`: a row for a
    picture, which does not count for the winner."""

    workload: str
    trace: Path
    acceptance: Acceptance | None
    seed: int
    setting: Setting
    choice: PolicyChoice
    label: str
    sweep: bool = False


def plan_jobs(
    workloads: Sequence[Workload],
    settings: Sequence[Setting],
    choices: Sequence[PolicyChoice],
    rival: PolicyChoice | None,
    sweep: bool = False,
) -> list[Job]:
    """The grid in the order of its table. `rival`: the policy that plays without speculation."""
    jobs = []
    for setting in settings:
        for workload in workloads:
            base = (workload.name, workload.path, workload.acceptance, workload.seed)
            jobs += [Job(*base, setting, choice, choice.label, sweep) for choice in choices]
            # A windowed trace has no other window than its own, so it has no rows for gamma 0.
            if rival is not None and workload.replay.fixed_gamma is None:
                without = replace(setting, speculation=False)
                jobs.append(Job(*base, without, rival, NO_SPECULATION, sweep))
    return jobs


def refuse_impossible(jobs: Sequence[Job]) -> None:
    """Before anything runs: UserError for the first job that its trace cannot serve."""
    for job in jobs:
        replay = _workload(job).replay
        trace = replay.model
        policy = job.choice.build()
        costs, settings = job.setting.costs(replay), job.setting.simulation(trace)
        try:
            check_requirements(replay, policy, costs, settings)
        except UserError as error:
            raise UserError(f"{job.workload}: {error}") from error


def servable(choices: Sequence[PolicyChoice], workloads: Sequence[Workload]) -> list[PolicyChoice]:
    """The policies whose needs every trace holds."""
    columns = frozenset.intersection(*(workload.replay.columns for workload in workloads))
    texts = any(workload.replay.kind == "text" for workload in workloads)
    held = {"router_mass" if name == "router_weights" else name for name in columns}
    held |= set() if texts else {"draft_tokens"}
    return [choice for choice in choices if choice.build().needs <= held]


def play(job: Job, path: Path | None = None) -> tuple[dict[str, Any], RunLog]:
    """(row of the table, run log) of one job; with `path` the log is also written there."""
    workload = _workload(job)
    policy, setting, replay = job.choice.build(), job.setting, workload.replay
    log = simulate(
        replay, policy, setting.costs(replay), setting.simulation(replay.model),
        setting.labels(workload.trace), path,
    )  # fmt: skip
    row = {
        "hardware": setting.machine.hardware.name,
        "model": setting.machine.model(replay.model).name,
        "draft": setting.machine.draft.name if setting.speculation else "none",
        "workload": job.workload,
        "trace_kind": replay.kind,
        "cache_ratio": setting.cache_ratio(replay.model),
        "slots": setting.slots(replay.model),
        "gamma": setting.gamma,
        "policy": job.label,
        "clairvoyant": is_clairvoyant(policy),
        "sweep": job.sweep,
        "policy_name": job.choice.name,
        "target": job.choice.target,
        "parameters": json.dumps(dict(job.choice.parameters)),
        "speculation": setting.speculation,
        **asdict(metrics(log)),
        "trace_layers": replay.model.layers,
        "trace_digest": workload.trace.digest,
    }
    return row, log


def play_all(jobs: Sequence[Job], workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """(index of the job, its row) as they finish. Stopping early leaves no process behind."""
    if workers == 1:
        for index, job in enumerate(jobs):
            yield index, play(job)[0]
        return
    # Fresh processes: a forked one would inherit the progress bar's thread.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_ignore_interrupt)
    try:
        futures = {pool.submit(_row, job): index for index, job in enumerate(jobs)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def table_of(rows: dict[int, dict[str, Any]]) -> pd.DataFrame:
    """The rows in the order of their jobs, however they finished."""
    return pd.DataFrame([rows[index] for index in sorted(rows)])


def _row(job: Job) -> dict[str, Any]:
    return play(job)[0]


def _ignore_interrupt() -> None:
    """Ctrl-C reaches the whole process group; the parent alone answers it."""
    signal(SIGINT, SIG_IGN)


def _workload(job: Job) -> Workload:
    return _opened(job.trace, job.acceptance, job.seed)


@lru_cache(maxsize=2)
def _opened(path: Path, acceptance: Acceptance | None, seed: int) -> Workload:
    """Jobs of one trace follow each other, so each process reads it about once."""
    return open_workload(path, acceptance, seed)
