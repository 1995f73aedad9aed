"""What can be said of a run from its folder alone, also of one that broke off."""

from pathlib import Path

from rich.console import Console

from experiments.metrics_table import metrics_table
from policies.errors import UserError
from traces.metrics import Metrics, metrics
from traces.runlog import read_runlog
from traces.runlog_schema import DECODE_PHASE

RUNLOG = "runlog"


def is_run(folder: Path) -> bool:
    """True for an output folder of `spac run`."""
    return (folder / RUNLOG).is_dir()


def figures_of(runlog: Path) -> Metrics | None:
    """The metrics of a run log; None if it holds no decode pass outside warm-up."""
    log = read_runlog(runlog)
    counted = log.passes[~log.passes["warmup"]]
    return metrics(log) if (counted["phase"] == DECODE_PHASE).any() else None


def report_run(folder: Path, console: Console) -> None:
    """Print the metrics of a run, and whether it is whole. UserError if there are none."""
    log = read_runlog(folder / RUNLOG)
    passes = log.passes[log.passes["phase"] == DECODE_PHASE]
    if not log.info.complete:
        console.print(
            f"{folder}: this run broke off after {len(passes)} passes and "
            f"{int(passes['committed'].sum())} tokens; the figures are those of what it did",
            highlight=False,
            soft_wrap=True,
        )
    figures = figures_of(folder / RUNLOG)
    if figures is None:
        raise UserError(f"{folder}: no decode pass outside warm-up in its log, nothing to report")
    console.print(metrics_table(figures, f"{log.info.policy}, {log.info.engine}"))
