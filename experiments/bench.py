"""`spac bench`: measure the project on this machine, with goals beside the numbers."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from omegaconf import DictConfig
from rich.console import Console

from experiments.bench_report import markdown, shown_goal, shown_value
from experiments.benchmarks.caches import measure_caches
from experiments.benchmarks.decisions import FILE, measure_decisions
from experiments.benchmarks.decisions_figure import decisions_figure
from experiments.benchmarks.engines import measure_engines
from experiments.benchmarks.grid import measure_grid
from experiments.benchmarks.host import host_facts
from experiments.benchmarks.measures import SIZES, Bench, LeftOut, Measure
from experiments.benchmarks.solvers import measure_solvers
from experiments.benchmarks.start import measure_start
from experiments.commands import options
from experiments.decision_file import read_decision_file
from experiments.figure_style import save_figure
from experiments.fitted_table import FittedTable
from experiments.machine import machine_from
from experiments.outputs import copy_target, new_folder, removed_if_unused
from experiments.policy_choice import choose_policies
from experiments.progress import progress_bar
from experiments.provenance import write_run_file
from experiments.terminal import terminal
from experiments.text_table import TextRow, TextTable
from experiments.unknown import unknown
from experiments.values import as_list
from policies.errors import UserError
from traces.atomic import write_atomically
from traces.report_json import write_json

Section = Callable[[Bench], Iterator[Measure]]
SECTIONS: dict[str, Section] = {
    "engines": measure_engines,
    "caches": measure_caches,
    "solvers": measure_solvers,
    "decisions": measure_decisions,
    "start": measure_start,
    "grid": measure_grid,
}
PICTURE = "decisions.png"


def run(config: DictConfig) -> int:
    """Run the sections, print a table, write the files."""
    console = terminal()
    names = sections_from(config)
    copy_target("copy_to", config.copy_to)
    bench, folder = bench_from(config)
    with removed_if_unused(folder):
        _bench(config, names, bench, folder, console)
    return 0


def _bench(
    config: DictConfig, names: list[str], bench: Bench, folder: Path, console: Console
) -> None:
    write_run_file(folder, "bench", config, {})
    before = host_facts()
    measures, left_out = measure(names, bench, console)
    result = {
        "size": bench.size.name,
        "host": before,
        "load_average_after": host_facts()["load_average"],
        "left_out": left_out,
        "measures": [{**asdict(one), "met": one.met} for one in measures],
    }
    write_json(folder / "bench.json", result)
    write_atomically(folder / "bench.md", markdown(result).encode())
    if (folder / FILE).exists():
        save_figure(decisions_figure(read_decision_file(folder / FILE)), folder / PICTURE)
    for table in measures_tables(measures):
        console.print(table)
    for name, reason in left_out.items():
        console.print(f"{name}: left out, {reason}", highlight=False, soft_wrap=True)
    kept = copy_target("copy_to", config.copy_to)
    if kept is not None:
        copy_results(folder, kept)
    for path in sorted(folder.iterdir()):
        console.print(str(path), highlight=False, soft_wrap=True)


def sections_from(config: DictConfig) -> list[str]:
    """The sections asked for, in their order; UserError for an unknown one."""
    asked = list(SECTIONS) if config.only is None else [str(one) for one in as_list(config.only)]
    for name in asked:
        if name not in SECTIONS:
            raise unknown("section", name, SECTIONS)
    if config.copy_to is not None and set(asked) != set(SECTIONS):
        raise UserError("copy_to= keeps the results of a whole run: leave only= out")
    return [name for name in SECTIONS if name in asked]


def bench_from(config: DictConfig) -> tuple[Bench, Path]:
    """What to measure with, and its new output folder."""
    if config.size not in SIZES:
        raise unknown("size", str(config.size), SIZES)
    named = options("policy") if config.policy is None else as_list(config.policy)
    choices = choose_policies([str(name) for name in named])
    for choice in choices:
        choice.build()  # whatever is wrong with it is said before anything is measured
    machine = machine_from(config)
    folder = new_folder(config.outputs, "bench")
    return Bench(machine, SIZES[config.size], choices, folder), folder


def measure(
    names: list[str], bench: Bench, console: Console
) -> tuple[list[Measure], dict[str, str]]:
    """(all numbers in order, section left out -> reason)."""
    measures: list[Measure] = []
    left_out: dict[str, str] = {}
    with progress_bar(console, "bench", len(names)) as advance:
        for name in names:
            try:
                for one in SECTIONS[name](bench):
                    measures.append(one)
            except LeftOut as reason:
                left_out[name] = str(reason)
            advance(name)
    return measures, left_out


def measures_tables(measures: list[Measure]) -> list[FittedTable]:
    """A table for each section, one line for each number."""
    headings = ["what", "measured", "goal", "note"]
    tables = []
    for section in dict.fromkeys(one.section for one in measures):
        rows = [
            TextRow(
                [one.what, shown_value(one), shown_goal(one), one.note],
                style="bold red" if one.met is False else "",
            )
            for one in measures
            if one.section == section
        ]
        content = TextTable(section, headings, rows)
        tables.append(FittedTable(content, words=["goal"], texts=["what", "note"]))
    return tables


def copy_results(folder: Path, target: Path) -> None:
    """All but run.json, as they are kept with the sources."""
    for path in folder.iterdir():
        if path.name != "run.json":
            shutil.copyfile(path, target / path.name)
