"""`spac study theory`: do a window's counts carry more information than bits, and tolerate more
mistakes?"""

import tempfile
from pathlib import Path

import pandas as pd
from omegaconf import DictConfig
from rich.console import Console

from experiments.comparison import refuse_run
from experiments.figure_style import save_figure
from experiments.machine import Capacity, machine_from
from experiments.outputs import new_folder, removed_if_unused
from experiments.progress import progress_bar
from experiments.provenance import write_run_file
from experiments.setting import Setting
from experiments.studies.data_folder import data_folder
from experiments.studies.error_table import ErrorRun, error_rows, plan_errors
from experiments.studies.information_table import information_rows
from experiments.studies.theory_figures import entropy_figure, error_figure, information_figure
from experiments.studies.theory_findings import theory_findings
from experiments.tables import write_table
from experiments.trace_choice import Workload, acceptance_from, open_workloads
from experiments.values import as_list, positive, whole_number
from policies.errors import UserError
from traces.atomic import write_atomically
from traces.importers import import_trace

INFORMATION = "information"
MOST_SHUFFLES = 10_000


def run(config: DictConfig, console: Console) -> Path:
    """Measure, write tables, pictures and findings; returns the folder."""
    with tempfile.TemporaryDirectory() as imported:
        workloads = workloads_from(config, Path(imported), console)
        runs = runs_from(workloads, config)
        with removed_if_unused(new_folder(config.outputs, "study")) as folder:
            digests = {one.name: one.trace.digest for one in workloads}
            write_run_file(folder, "study", config, digests)
            information = measure_information(workloads, config, console)
            write_table(folder, information, INFORMATION)
            errors = play_errors(runs, console)
            write_table(folder, errors)
            save_figure(entropy_figure(information), folder / "entropy.png")
            save_figure(information_figure(information), folder / "information.png")
            save_figure(error_figure(errors), folder / "errors.png")
            write_atomically(folder / "findings.md", theory_findings(information, errors).encode())
    return folder


def workloads_from(config: DictConfig, imported: Path, console: Console) -> list[Workload]:
    """The named traces, and the routing files of the data folder if there is one."""
    if positive("shuffles", config.shuffles) > MOST_SHUFFLES:
        raise UserError(f"shuffles={config.shuffles}: must be at most {MOST_SHUFFLES}")
    names = None if config.trace is None else [str(name) for name in as_list(config.trace)]
    data = data_folder(config.data)
    chosen = open_workloads(names, seed=whole_number("seed", config.seed)) if names != [] else []
    if data is None:
        console.print("no data folder with routing files of other models: give data=FOLDER")
        if not chosen:
            raise UserError("trace=[] without a data folder: there is nothing to measure")
        return chosen
    files = sorted(data.glob("*.npz"))
    if not files:
        raise UserError(f"data={data}: no .npz file in it")
    paths = [str(import_trace(file, imported / file.stem).path) for file in files]
    acceptance = acceptance_from(config.acceptance)
    return chosen + open_workloads(paths, acceptance, whole_number("seed", config.seed))


def measure_information(
    workloads: list[Workload], config: DictConfig, console: Console
) -> pd.DataFrame:
    """Sections 1 and 2."""
    tables = []
    with progress_bar(console, "information", len(workloads)) as advance:
        for workload in workloads:
            tables.append(
                information_rows(workload, config.gamma, None, config.shuffles, config.seed)
            )
            advance(workload.name)
    return pd.concat(tables, ignore_index=True)


def runs_from(workloads: list[Workload], config: DictConfig) -> list[ErrorRun]:
    """Those of section 3, checked; UserError for a workload that cannot be played so."""
    rates = sorted(map(float, as_list(config.errors)))
    if len(rates) < 2 or rates[0] != 0 or rates[-1] > 1:
        raise UserError(f"errors={rates}: need 0 and at least one rate more, none above 1")
    runs = []
    for workload in workloads:
        text = workload.replay.kind == "text"
        key = "text_requests" if text else "requests"
        setting = Setting(
            machine=machine_from(config),
            capacity=Capacity(cache_ratio=float(config.cache_ratio)),
            gamma=config.gamma,
            staging=4,
            launch="late",
            lanes="concurrent",
            requests=config[key],
        )
        planned = plan_errors(workload, setting, rates, config.seed)
        for run in planned:
            refuse_run(workload.name, workload.replay, run.policy(), setting)
        runs += planned
    return runs


def play_errors(runs: list[ErrorRun], console: Console) -> pd.DataFrame:
    """Section 3."""
    rows = []
    with progress_bar(console, "errors", len(runs)) as advance:
        for row in error_rows(runs):
            rows.append(row)
            advance(f"{row['workload']}, {row['estimator']} of {row['signal']}")
    return pd.DataFrame(rows)
