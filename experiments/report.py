"""`spac report`: tables, pictures, winner, one sentence and the page of a comparison."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import DictConfig

from experiments.cell import CELL, TPS
from experiments.outcome import first_runlog, show_report, write_report
from experiments.outputs import new_folder, removed_if_unused
from experiments.pictures import draw_all, draw_details, save_all
from experiments.provenance import read_run_file, write_run_file
from experiments.ranking import standing
from experiments.report_page.contents import page_of
from experiments.report_page.page import render
from experiments.report_page.validation_part import read_validation, source_of_validation
from experiments.run_report import is_run, report_run
from experiments.tables import read_table, write_table
from experiments.terminal import terminal
from experiments.values import truth
from policies.errors import UserError
from traces.atomic import write_atomically

PAGE_FILE = "report.html"
COLUMNS = {*CELL, TPS, "policy", "clairvoyant", "sweep"}  # without these nothing can be ranked


def run(config: DictConfig) -> int:
    """Make the report of `config.folder` anew in a new folder; of a run print the figures."""
    source = Path(config.folder)
    pictures = truth("pictures", config.pictures)
    if is_run(source):
        if config.validation is not None or not pictures:
            raise UserError(
                f"{source}: the figures of a run are printed; leave validation= and pictures= out"
            )
        report_run(source, terminal())
        return 0
    record, rows = read_run_file(source), read_table(source)
    refuse_other_tables(source, record, rows)
    validation = read_validation(config.validation)
    standing(rows[~rows["sweep"]])  # refuses a table that cannot have a winner, before writing
    with removed_if_unused(new_folder(config.outputs, "report")) as folder:
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
        show_report(replace(report, paths=paths), terminal())
    return 0


def refuse_other_tables(source: Path, record: Mapping[str, Any], rows: pd.DataFrame) -> None:
    """UserError if `rows` are not of a comparison: other commands write tables too."""
    if not set(rows) >= COLUMNS:
        raise UserError(
            f"{source}: this table of spac {record['command']} has no column "
            f"{', '.join(sorted(COLUMNS - set(rows)))}; spac report takes comparisons"
        )
