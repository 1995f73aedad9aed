"""`spac report`, and the last step of compare and demo: tables, pictures, winner, one sentence."""

from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import DictConfig
from rich.console import Console

from experiments.outputs import new_folder
from experiments.pictures import draw_all, save_all
from experiments.provenance import read_run_file, write_run_file
from experiments.ranking import Standing, sentence, standing
from experiments.tables import comparison_tables, read_table, write_table
from experiments.winner import Winner, winner_of, write_winner
from traces.runlog import RunLog, read_runlog

RUNLOGS = "runlogs"


def run(config: DictConfig) -> int:
    """Make the report of `config.folder` anew in a new output folder."""
    source = Path(config.folder)
    record = read_run_file(source)
    rows = read_table(source)
    folder = new_folder(config.outputs, "report")
    write_run_file(folder, "report", config, record["inputs"])
    console = Console()
    write_table(folder, rows)
    result = report_on(rows, record, source, folder, console, bool(config.pictures))
    console.print(sentence(result), style="bold", highlight=False, soft_wrap=True)
    return 0


def report_on(
    rows: pd.DataFrame,
    record: dict[str, Any],
    source: Path,
    folder: Path,
    console: Console,
    pictures: bool,
) -> Standing:
    """Print tables, write winner.yaml and pictures into `folder`, print their paths."""
    main = rows[~rows["sweep"]]
    console.print(*comparison_tables(main), sep="\n\n")
    result = standing(main)
    winner: Winner = winner_of(main, result, record["source_hash"], record["inputs"])
    paths = [write_winner(folder, winner)]
    if pictures:
        paths = save_all(draw_all(rows, first_runlog(source)), folder) + paths
    for path in paths:
        console.print(str(path), highlight=False, soft_wrap=True)
    return result


def first_runlog(folder: Path) -> RunLog | None:
    """A run log of the winner that the comparison kept, if any."""
    logs = sorted((folder / RUNLOGS).glob("*"))
    return read_runlog(logs[0]) if logs else None
