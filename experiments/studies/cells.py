"""`spac study cells`: is `ours` the fastest policy everywhere, and how much of what is possible
does it reach?"""

import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import DictConfig
from rich.console import Console

from experiments.comparison import play_all, refuse_impossible, table_of
from experiments.figure_style import save_figure
from experiments.outputs import new_folder, removed_if_unused
from experiments.progress import progress_bar
from experiments.provenance import write_run_file
from experiments.studies.cell_jobs import CellRun, make_worlds, plan_cells
from experiments.studies.cell_table import cell_table, rankings
from experiments.studies.cells_figure import cells_figure
from experiments.studies.cells_file import CELLS_FILE, CellsFile, read_cells
from experiments.studies.cells_findings import cells_findings
from experiments.studies.data_folder import data_folder
from experiments.tables import write_table
from experiments.workers import workers_from
from traces.atomic import write_atomically

KEPT_COLUMNS = (
    "part", "workload", "cache_ratio", "slots", "gamma", "policy", "clairvoyant", "speculation",
    "approximate", "played_without", "tokens_per_second", "committed_tokens", "mean_gamma",
    "hit_rate_per_expert", "bytes_copied", "link_busy_share",
)  # fmt: skip


def run(config: DictConfig, console: Console) -> Path:
    """Play, write tables, picture and findings; returns the folder."""
    cells = read_cells(CELLS_FILE if config.cells is None else Path(str(config.cells)))
    with tempfile.TemporaryDirectory() as written:
        worlds = make_worlds(cells, config, data_folder(config.data), Path(written))
        runs = plan_cells(cells, worlds)
        refuse_impossible([run.job for run in runs])
        with removed_if_unused(new_folder(config.outputs, "study")) as folder:
            digests = {one.workload.name: one.workload.trace.digest for one in worlds}
            write_run_file(folder, "study", config, digests)
            keep(folder, play_cells(runs, config.workers, console), str(config.split), cells)
    return folder


def keep(folder: Path, rows: pd.DataFrame, split: str, cells: CellsFile) -> None:
    """Tables, picture and findings."""
    table, order = cell_table(rows), rankings(rows)
    write_table(folder, rows[list(KEPT_COLUMNS)], "runs")
    write_table(folder, table)
    write_table(folder, order, "rankings")
    save_figure(cells_figure(table), folder / "cells.png")
    write_atomically(folder / "findings.md", cells_findings(table, order, split, cells).encode())


def play_cells(runs: list[CellRun], workers: int | None, console: Console) -> pd.DataFrame:
    """The rows of all runs, in order, with the part that each is for."""
    rows: dict[int, dict[str, Any]] = {}
    jobs = [run.job for run in runs]
    with progress_bar(console, "cells", len(jobs)) as advance:
        for index, row in play_all(jobs, workers_from(workers, len(jobs))):
            rows[index] = {"part": runs[index].part} | row
            advance(f"{row['workload']}, {row['policy']}")
    return table_of(rows)
