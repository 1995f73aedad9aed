"""`spac compare`: play the grid, keep every finished row, then table, pictures and winner."""

import shutil
import time
from typing import Any

import pandas as pd
from omegaconf import DictConfig
from rich.console import Console

from experiments.bounding import check_method, with_bounds
from experiments.commands import options
from experiments.comparison import (
    Job,
    keys_of,
    plan_jobs,
    play,
    play_all,
    refuse_impossible,
    rivals_from,
    servable,
    table_of,
)
from experiments.decision_file import as_yaml
from experiments.kept_cells import CellStore, key_of
from experiments.machine import capacities_from, machine_from
from experiments.outcome import RUNLOGS, show_report, write_report
from experiments.policy_choice import PolicyChoice, choose_policies
from experiments.progress import progress_bar
from experiments.provenance import read_run_file, write_run_file
from experiments.ranking import best_setting, standing
from experiments.setting import settings_from
from experiments.sweep import Place, is_shard, open_place
from experiments.tables import write_table
from experiments.terminal import terminal
from experiments.trace_choice import Workload, acceptance_from, open_workloads, refuse_idle_seed
from experiments.values import as_list, as_mapping, truth, whole_number
from experiments.workers import workers_from
from traces.atomic import sha256_of
from traces.reader import open_trace

SECONDS_BETWEEN_WRITES = 1.0


def run(config: DictConfig) -> int:
    """Compare, write the output folder, print tables and the sentence."""
    # The process that launched the jobs of a sweep shows how far they are.
    console = terminal(quiet=config.sweep is not None and is_shard())
    check_method(config.bound)
    pictures = truth("pictures", config.pictures)
    jobs = jobs_from(config, console)
    workers_from(config.workers, len(jobs))  # refused before there is a folder
    with open_place(config, "compare") as place:
        folder = place.folder
        write_run_file(folder, "compare", config, digests(jobs), planned_rows(jobs))
        rows = compare(jobs, place, config, console)
        keep_runlogs(jobs, rows, place)
        record = read_run_file(folder)
        show_report(write_report(rows, record, folder, folder, pictures), console)
    return 0


def keep_runlogs(jobs: list[Job], rows: pd.DataFrame, place: Place) -> None:
    """Play the best policy that speculates, and the winner if it does not, once more on the first
    workload, with their run logs on disk."""
    main = rows[~rows["sweep"]]
    winner = standing(main).winner
    ratio, gamma = best_setting(main, winner)
    base = main[(main["cache_ratio"] == ratio) & (main["gamma"] == gamma)]
    best = standing(base[base["speculation"]]).winner if base["speculation"].any() else None
    for number, label in enumerate(dict.fromkeys((best, winner)), start=1):
        if label is not None:
            job = jobs[int(base.index[base["policy"] == label][0])]
            name = f"{number}-{job.label}-{job.trace.name}".replace(" ", "-")
            keep_runlog(job, name, place)


def keep_runlog(job: Job, name: str, place: Place) -> None:
    """Play `job` into a run log; in a sweep only where an earlier start has not finished it."""
    path, store = place.folder / RUNLOGS / name, place.store
    key = key_of("runlog", *keys_of([job]), name)
    if store is not None:
        if path.is_dir() and store.kept([key])[0]:
            return
        shutil.rmtree(path, ignore_errors=True)
    begun = time.perf_counter()
    play(job, path)
    if store is not None:
        store.write(key, name, time.perf_counter() - begun)


def jobs_from(config: DictConfig, console: Console) -> list[Job]:
    """All runs that the config asks for, checked before the first begins."""
    names = None if config.trace is None else [str(name) for name in as_list(config.trace)]
    workloads = open_workloads(
        names, acceptance_from(config.acceptance), whole_number("seed", config.seed)
    )
    refuse_idle_seed(workloads, config.seed)
    machine = machine_from(config)
    capacities = capacities_from(config, as_list(config.cache_ratio), as_list(config.slots))
    settings = settings_from(config, machine, capacities, as_list(config.gamma))
    choices = policies_from(config, workloads, console)
    note_gammas(choices, as_list(config.gamma), console)
    named = [] if config.no_speculation is None else as_list(config.no_speculation)
    rivals = rivals_from([str(name) for name in named], choices)
    possible = served(list(rivals.values()), workloads, console)
    rivals = {label: choice for label, choice in rivals.items() if choice in possible}
    if rivals:
        console.print(
            f"played without a draft as well: {', '.join(one.label for one in rivals.values())} "
            "(no_speculation=null leaves them out)",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
    jobs = plan_jobs(workloads, settings, choices, rivals)
    refuse_impossible(jobs)
    for model in dict.fromkeys(workload.replay.model for workload in workloads):
        console.print(settings[0].scale_note(model), highlight=False, soft_wrap=True)
    return jobs


def note_gammas(choices: list[PolicyChoice], gammas: list[Any], console: Console) -> None:
    """A line for each policy from a file that was tuned with a window that is not played."""
    for choice in choices:
        if choice.gamma is not None and choice.gamma not in gammas:
            console.print(
                f"{choice.label} was tuned with gamma={choice.gamma}; here it plays the grid's",
                highlight=False, soft_wrap=True,
            )  # fmt: skip


def policies_from(
    config: DictConfig, workloads: list[Workload], console: Console
) -> list[PolicyChoice]:
    """The named policies; without names all that the traces can serve."""
    overrides = as_mapping(config.overrides)
    if config.policy is not None:
        return choose_policies([str(name) for name in as_list(config.policy)], overrides)
    return served(choose_policies(options("policy"), overrides), workloads, console)


def served(
    choices: list[PolicyChoice], workloads: list[Workload], console: Console
) -> list[PolicyChoice]:
    """Those that all traces can serve; a line for each that is left out."""
    possible = servable(choices, workloads)
    for choice in choices:
        if choice not in possible:
            needs = ", ".join(sorted(choice.build().needs))
            console.print(f"left out: {choice.label} needs {needs}, which not all traces hold")
    return possible


def compare(jobs: list[Job], place: Place, config: DictConfig, console: Console) -> pd.DataFrame:
    """Play all jobs, then bound them. Whatever stops it, the rows finished so far are in the
    folder."""
    folder, store = place.folder, place.store
    rows = {} if store is None else kept_rows(jobs, store, console)
    written = time.monotonic()
    count = workers_from(config.workers, len(jobs))
    try:
        with progress_bar(console, "compare", len(jobs), len(rows)) as advance:
            for index, row in play_all(jobs, count, store, frozenset(rows)):
                rows[index] = row
                advance(f"{row['workload']}, {row['policy']}")
                if time.monotonic() - written > SECONDS_BETWEEN_WRITES:
                    write_table(folder, table_of(rows))
                    written = time.monotonic()
    finally:
        if rows:
            write_table(folder, table_of(rows))
    bounded = with_bounds(table_of(rows), jobs, check_method(config.bound), count, console, store)
    write_table(folder, bounded)
    return bounded


def kept_rows(jobs: list[Job], store: CellStore, console: Console) -> dict[int, dict[str, Any]]:
    """Rows that earlier starts of the sweep have finished; a line for each file that is none."""
    rows, damaged = store.kept(keys_of(jobs))
    for path in damaged:
        console.print(
            f"{path}: not a whole result of this cell; it is played again",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
    if rows:
        console.print(
            f"continued: {len(rows)} of {len(jobs)} cells were finished before", highlight=False
        )
    return rows


def planned_rows(jobs: list[Job]) -> int:
    """Rows that count for the winner."""
    return sum(not job.sweep for job in jobs)


def digests(jobs: list[Job]) -> dict[str, str]:
    """SHA-256 of each trace and of each file of decision times used."""
    used = {str(path): open_trace(path).digest for path in dict.fromkeys(job.trace for job in jobs)}
    for job in jobs:
        decision = job.setting.decision
        if decision is not None:
            used[f"decision {decision.name}"] = sha256_of(as_yaml(decision).encode())
    return used
