"""`spac report`, and the end of compare and demo: tables, pictures, winner, one sentence."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import DictConfig
from rich.console import Console

from experiments.cell import CELL, TPS
from experiments.configuration import truth
from experiments.outputs import new_folder
from experiments.pictures import draw_all, draw_details, save_all
from experiments.provenance import read_run_file, write_run_file
from experiments.ranking import (
    Standing,
    can_win_drafting,
    drafting_sentence,
    sentence,
    standing,
)
from experiments.report_page.contents import page_of
from experiments.report_page.page import render
from experiments.report_page.validation_part import read_validation, source_of_validation
from experiments.run_report import is_run, report_run
from experiments.tables import comparison_tables, read_table, write_table
from experiments.winner import DRAFTING_FILE, WINNER_FILE, Winner, winner_of, write_winner
from policies.errors import UserError
from traces.atomic import write_atomically
from traces.runlog import RunLog, read_runlog

RUNLOGS = "runlogs"
PAGE_FILE = "report.html"
COLUMNS = {*CELL, TPS, "policy", "clairvoyant", "sweep"}  # without these nothing can be ranked


@dataclass(frozen=True)
class Report:
    """A comparison with its outcome, the winners by name of their file, and the files made."""

    rows: pd.DataFrame
    standing: Standing
    winners: Mapping[str, Winner]
    paths: list[Path]
    drafting: Standing | None = None


def run(config: DictConfig) -> int:
    """Make the report of `config.folder` anew in a new folder; of a run print the figures."""
    source = Path(config.folder)
    if is_run(source):
        report_run(source, Console())
        return 0
    pictures = truth("pictures", config.pictures)
    record, rows = read_run_file(source), read_table(source)
    refuse_other_tables(source, record, rows)
    validation = read_validation(config.validation)
    standing(rows[~rows["sweep"]])  # refuses a table that cannot have a winner, before writing
    folder = new_folder(config.outputs, "report")
    write_run_file(folder, "report", config, record["inputs"])
    paths = write_table(folder, rows)
    report = write_report(rows, record, source, folder, False)
    drawn = {}
    if pictures:
        partial = report.standing.partial
        drawn = draw_all(rows, first_runlog(source), partial) | draw_details(rows)
    paths += save_all(drawn, folder, (".png", ".pdf"))
    winners = {str(folder / name): winner for name, winner in report.winners.items()}
    page = page_of(
        rows, record, report.standing, report.drafting, winners, drawn, validation,
        source_of_validation(config.validation),
    )  # fmt: skip
    write_atomically(folder / PAGE_FILE, render(page).encode())
    paths += [*report.paths, folder / PAGE_FILE]
    show_report(replace(report, paths=paths), Console())
    return 0


def refuse_other_tables(source: Path, record: Mapping[str, Any], rows: pd.DataFrame) -> None:
    """UserError if `rows` are not of a comparison: other commands write tables too."""
    if not set(rows) >= COLUMNS:
        raise UserError(
            f"{source}: this table of spac {record['command']} has no column "
            f"{', '.join(sorted(COLUMNS - set(rows)))}; spac report takes comparisons"
        )


def write_report(
    rows: pd.DataFrame, record: dict[str, Any], source: Path, folder: Path, pictures: bool
) -> Report:
    """Write winner.yaml and pictures into `folder`. `source`: the comparison, with its run logs."""
    main, planned = rows[~rows["sweep"]], record.get("planned_rows")
    result = standing(main, planned_rows=planned)
    winner = winner_of(main, result, record["source_hash"], record["inputs"])
    winners, drafting = {WINNER_FILE: winner}, None
    if winner.gamma == 0 and can_win_drafting(main):
        drafting = standing(main, drafting=True, planned_rows=planned)
        second = winner_of(main, drafting, record["source_hash"], record["inputs"])
        winners[DRAFTING_FILE] = second
    paths = [write_winner(folder, one, name) for name, one in winners.items()]
    if pictures:
        paths = save_all(draw_all(rows, first_runlog(source), result.partial), folder) + paths
    return Report(rows, result, winners, paths, drafting)


def show_report(report: Report, console: Console) -> None:
    """Print the tables, the paths, and the sentence."""
    main = report.rows[~report.rows["sweep"]]
    console.print(*comparison_tables(main), sep="\n\n")
    for path in report.paths:
        console.print(str(path), highlight=False, soft_wrap=True)
    if report.drafting is not None:
        console.print(drafting_sentence(report.drafting), highlight=False, soft_wrap=True)
    console.print(sentence(report.standing), style="bold", highlight=False, soft_wrap=True)


def first_runlog(folder: Path) -> RunLog | None:
    """The run log that the comparison kept of its best policy that speculates, if any."""
    logs = sorted((folder / RUNLOGS).glob("*"))
    return read_runlog(logs[0]) if logs else None
