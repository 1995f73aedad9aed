"""How a comparison ends: the winner, its pictures, the tables and one sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from experiments.ranking import (
    Standing,
    can_win_drafting,
    drafting_sentence,
    sentence,
    standing,
)
from experiments.tables import comparison_tables
from experiments.winner import DRAFTING_FILE, WINNER_FILE, Winner, winner_of, write_winner
from traces.runlog import RunLog, read_runlog

RUNLOGS = "runlogs"


@dataclass(frozen=True)
class Report:
    """A comparison with its outcome, the winners by name of their file, and the files made."""

    rows: pd.DataFrame
    standing: Standing
    winners: Mapping[str, Winner]
    paths: list[Path]
    drafting: Standing | None = None


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
        # Not before a picture is drawn: loading matplotlib takes a third of a second.
        from experiments.pictures import draw_all, save_all

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
