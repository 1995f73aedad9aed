"""`spac trace info|check|stats|import PATH`: look at a trace, or make one from a foreign file."""

from collections.abc import Callable

from omegaconf import DictConfig
from rich.console import Console

from experiments.configuration import as_list, number, whole_number
from experiments.refusals import unknown
from experiments.trace_choice import acceptance_from, find_trace
from experiments.trace_tables import info_table, stats_tables
from policies.errors import UserError
from traces.check import check_trace
from traces.importers import import_trace
from traces.reader import open_trace
from traces.stats import trace_stats


def run(config: DictConfig) -> int:
    """Do the action; problems found by a check are a refusal, exit code 2."""
    if config.action is None or config.path is None:
        raise UserError(f"usage: spac trace {'|'.join(ACTIONS)} PATH [key=value ...]")
    if config.action not in ACTIONS:
        raise unknown("action", str(config.action), ACTIONS)
    return ACTIONS[config.action](config, Console())


def show_info(config: DictConfig, console: Console) -> int:
    """The manifest in words."""
    console.print(info_table(open_trace(find_trace(config.path))))
    return 0


def check(config: DictConfig, console: Console) -> int:
    """Every rule of the format; problems are errors."""
    path = find_trace(config.path)
    report = check_trace(path)
    for fact in report.facts:
        console.print(fact, highlight=False, soft_wrap=True)
    if not report.ok:
        raise UserError(f"{path}: {'; '.join(report.problems)}")
    console.print(f"{path}: {report.requests} requests, {report.rows} rows, no problem found")
    return 0


def show_stats(config: DictConfig, console: Console) -> int:
    """Locality, reuse, windows and hit rates."""
    stats = trace_stats(
        open_trace(find_trace(config.path)),
        acceptance=acceptance_from(config.acceptance),
        gammas=tuple(whole_number("gammas", value) for value in as_list(config.gammas)),
        ratios=tuple(number("ratios", value) for value in as_list(config.ratios)),
        seed=whole_number("seed", config.seed),
    )
    for table in stats_tables(stats):
        console.print(table)
    return 0


def import_file(config: DictConfig, console: Console) -> int:
    """Write a new trace from a routing file."""
    if config.out is None:
        raise UserError("spac trace import needs out=<new trace directory>")
    trace = import_trace(config.path, config.out, str(config.format), config.expert_bytes)
    console.print(info_table(trace))
    return 0


ACTIONS: dict[str, Callable[[DictConfig, Console], int]] = {
    "info": show_info,
    "check": check,
    "stats": show_stats,
    "import": import_file,
}
