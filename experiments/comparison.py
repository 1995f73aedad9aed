"""A comparison: the grid of workloads, settings and policies as jobs, each giving one row."""

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.cell import HITS_BY_LAYER
from experiments.first_use import compiling_beside
from experiments.kept_cells import CellStore, key_of, run_kept
from experiments.policy_choice import PolicyChoice, choose_policies
from experiments.ranking import NO_SPECULATION
from experiments.setting import Setting
from experiments.trace_choice import Workload, open_workload
from policies.errors import UserError
from simulator.engines import choose_engine, simulate
from simulator.foresight import is_clairvoyant
from simulator.requirements import check_gamma, check_requirements, missing_observation
from simulator.settings import SimulationSettings
from traces.acceptance import Acceptance
from traces.held_replay import HeldReplay
from traces.layer_hits import hit_rate_by_layer
from traces.metrics import metrics
from traces.reader import open_trace
from traces.replay import Replay
from traces.runlog import RunLog


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
    rivals: Mapping[str, PolicyChoice],
    sweep: bool = False,
) -> list[Job]:
    """The grid in the order of its table. `rivals`: label -> policy that plays without
    speculation."""
    jobs = []
    for setting in settings:
        for workload in workloads:
            base = (workload.name, workload.path, workload.acceptance, workload.seed)
            jobs += [Job(*base, setting, choice, choice.label, sweep) for choice in choices]
            # A windowed trace has no other window than its own, so it has no rows for gamma 0.
            if workload.replay.fixed_gamma is None:
                without = replace(setting, speculation=False)
                jobs += [Job(*base, without, one, name, sweep) for name, one in rivals.items()]
    return jobs


def rivals_from(names: Sequence[str], choices: Sequence[PolicyChoice]) -> dict[str, PolicyChoice]:
    """Label -> policy played without a draft: those named, and all clairvoyants among `choices`, so
    that the oracle is one for both ways to decode."""
    named = choose_policies(names) if names else []
    rivals = {NO_SPECULATION: named[0]} if len(named) == 1 else {}
    foreseeing = [choice for choice in choices if named and is_clairvoyant(choice.build())]
    for choice in [*named[len(rivals) :], *foreseeing]:
        rivals[f"{NO_SPECULATION} {choice.label}"] = choice
    return rivals


def refuse_impossible(jobs: Sequence[Job]) -> None:
    """Before anything runs: UserError for the first job that its trace cannot serve."""
    for job in (jobs[index] for index in by_trace(jobs)):
        refuse_run(
            job.workload, workload_of(job).replay, job.choice.build(), job.setting, job.choice.name
        )


def refuse_run(
    workload: str, replay: Replay, policy: Any, setting: Setting, name: str | None = None
) -> None:
    """UserError for a run that the trace cannot serve. `name`: of the policy in conf/policy."""
    settings = setting.simulation(replay.model)
    try:
        refuse_too_few_requests(replay, settings)
        check_gamma(replay, settings.gamma)  # before a cost table of so many rows is made
        costs = setting.costs(replay, name or policy.name)
        choose_engine(policy, setting.engine)  # type: ignore[arg-type]
        check_requirements(replay, policy, costs, settings)
    except UserError as error:
        raise UserError(f"{workload}: {error}") from error


def refuse_too_few_requests(replay: Replay, settings: SimulationSettings) -> None:
    """UserError if all requests would be warm-up, so that nothing is measured."""
    there, asked = len(replay.request_ids), settings.requests
    if settings.warmup_requests < (there if asked is None else min(asked, there)):
        return
    found = f"requests={asked}" if asked is not None else f"a trace of {there} request"
    raise UserError(
        f"{found}: the first request is warm-up and never counted, so at least "
        f"{settings.warmup_requests + 1} are needed"
    )


def servable(choices: Sequence[PolicyChoice], workloads: Sequence[Workload]) -> list[PolicyChoice]:
    """The policies whose needs every trace holds."""
    return [choice for choice in choices if all(serves(one.replay, choice) for one in workloads)]


def serves(replay: Replay, choice: PolicyChoice) -> bool:
    """True if the trace holds what the policy insists on; wishes may be lacking."""
    policy = choice.build()
    insisted = policy.needs - getattr(policy, "wishes", frozenset())
    return all(missing_observation(replay, need) is None for need in insisted)


def play(job: Job, path: Path | None = None) -> tuple[dict[str, Any], RunLog]:
    """(row of the table, run log) of one job; with `path` the log is also written there."""
    workload = workload_of(job)
    policy, setting, replay = job.choice.build(), job.setting, workload.replay
    costs, settings = setting.costs(replay, job.choice.name), setting.simulation(replay.model)
    with compiling_beside():
        log = simulate(
            replay, policy, costs, settings, setting.labels(workload.trace), path,
            engine=setting.engine,  # type: ignore[arg-type]
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
        "decision_times": setting.decision_source,
        "engine": choose_engine(policy, setting.engine).engine,  # type: ignore[arg-type]
        "played_without": log.info.notes.get("played_without", ""),
        **asdict(metrics(log)),
        HITS_BY_LAYER: hit_rate_by_layer(log).tolist(),
        "trace_layers": replay.model.layers,
        "trace_experts": replay.model.experts,
        "model_layers": setting.machine.model(replay.model).moe_layers,
        "trace_digest": workload.trace.digest,
    }
    return row, log


def play_all(
    jobs: Sequence[Job],
    workers: int,
    store: CellStore | None = None,
    kept: Container[int] = (),
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(index of the job, its row) as they finish, in any order, without those `kept` before; each
    is also written to `store`, where there is one."""
    order = [index for index in by_trace(jobs) if index not in kept]
    return run_kept(_row, jobs, keys_of(jobs), order, workers, store)


def keys_of(jobs: Sequence[Job]) -> list[str]:
    """Names of the jobs' cells in a store: whatever decides a row is in its name."""
    return [
        key_of(
            _digest_of(job.trace), job.workload, job.acceptance, job.seed, job.setting, job.label,
            job.choice.target, sorted(job.choice.parameters.items()), job.sweep,
        )
        for job in jobs
    ]  # fmt: skip


def by_trace(jobs: Sequence[Job]) -> list[int]:
    """Indexes of the jobs, those of one trace together: a process then reads each trace once."""
    traces = list(dict.fromkeys(_key(job) for job in jobs))
    return sorted(range(len(jobs)), key=lambda index: traces.index(_key(jobs[index])))


def table_of(rows: dict[int, dict[str, Any]]) -> pd.DataFrame:
    """The rows in the order of their jobs, however they finished."""
    return pd.DataFrame([rows[index] for index in sorted(rows)])


def _row(job: Job) -> dict[str, Any]:
    return play(job)[0]


def workload_of(job: Job) -> Workload:
    """The job's trace, opened; kept for the next jobs of the same trace."""
    return _opened(*_key(job))


def _key(job: Job) -> tuple[Path, Acceptance | None, int]:
    """What a job's trace is read by."""
    return job.trace, job.acceptance, job.seed


@lru_cache(maxsize=64)
def _digest_of(path: Path) -> str:
    return open_trace(path).digest


@lru_cache(maxsize=1)
def _opened(path: Path, acceptance: Acceptance | None, seed: int) -> Workload:
    """Jobs of one trace follow each other, so each process reads it once."""
    workload = open_workload(path, acceptance, seed)
    return replace(workload, replay=HeldReplay(workload.replay))
