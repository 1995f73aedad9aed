"""The jobs of a named sweep under -m: planned and checked before the first begins, watched while
whichever launcher runs them, and merged into one table after the last."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from hydra import compose, initialize_config_module
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig
from rich.console import Console

from experiments.cell import CELL
from experiments.commands import Command
from experiments.compare import digests, jobs_from, planned_rows
from experiments.comparison import keys_of
from experiments.configuration import parse
from experiments.kept_cells import CellStore
from experiments.progress import progress_bar
from experiments.provenance import write_run_file
from experiments.ranking import sentence, standing
from experiments.sweep import CELLS, SHARDS, declare, locked, settings_of, sweep_folder
from experiments.tables import TABLE_NAME, read_table, write_table
from experiments.terminal import terminal

SECONDS_BETWEEN_LOOKS = 0.5


def run_shards(
    command: Command,
    overrides: Sequence[str],
    complete: Callable[[DictConfig], DictConfig],
    launch: Callable[[], None],
) -> None:
    """Play all jobs of the sweep, each of which keeps its cells, and merge their tables. `complete`
    takes what Hydra composes and adds what bypasses it; `launch` runs the jobs."""
    console = terminal()
    words = [one for one in parse(overrides) if not one.is_hydra_override()]
    combinations = job_words(words)
    configs = [complete(composed(command, one)) for one in combinations]
    planned = [jobs_from(config, Console(quiet=True)) for config in configs]
    root = sweep_folder(configs[0], command.name)
    with locked(root):
        attempt = declare(root, [settings_of(config) for config in configs])
        keys = list(dict.fromkeys(key for jobs in planned for key in keys_of(jobs)))
        with watched(CellStore(root / CELLS, attempt), keys, console):
            launch()
        swept = [swept_values(words, one) for one in combinations]
        rows = merged(root, swept)
        write_table(root, rows)
        if not rows.duplicated([*CELL, "policy"]).any():  # then spac report can rank them together
            jobs = [job for one in planned for job in one]
            write_run_file(root, command.name, configs[0], digests(jobs), planned_rows(jobs))
        show_shards(root, swept, console)


def job_words(words: Sequence[Override]) -> list[list[str]]:
    """Overrides of each job, in the order of Hydra's own sweeper: the last key varies fastest."""
    combinations: list[list[str]] = [[]]
    for word in words:
        key = word.get_key_element()
        options = (
            [f"{key}={text}" for text in word.sweep_string_iterator()]
            if word.is_sweep_override()
            else [word.input_line or ""]
        )
        combinations = [[*before, option] for before in combinations for option in options]
    return combinations


def composed(command: Command, words: Sequence[str]) -> DictConfig:
    """What Hydra composes for one job."""
    with initialize_config_module(config_module="conf", version_base="1.3"):
        return compose(config_name=command.name, overrides=list(words))


def swept_values(words: Sequence[Override], combination: Sequence[str]) -> dict[str, str]:
    """Key -> value of the keys that differ between jobs."""
    return {
        word.key_or_group.removeprefix("overrides.").rpartition("/")[2]: text.partition("=")[2]
        for word, text in zip(words, combination, strict=True)
        if word.is_sweep_override()
    }


def merged(root: Path, swept: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    """The tables of all jobs, one below the other; what was swept and is no column becomes one."""
    tables = []
    for number, values in enumerate(swept, start=1):
        rows = read_table(root / SHARDS / str(number))
        new = {key: value for key, value in values.items() if key not in rows}
        tables.append(rows.assign(job=number, **new))
    return pd.concat(tables, ignore_index=True)


@contextmanager
def watched(store: CellStore, keys: Sequence[str], console: Console) -> Iterator[None]:
    """A progress bar that counts finished cells on disk, whichever process or machine wrote them;
    not where nobody looks at a terminal."""
    if not console.is_terminal:
        yield
        return
    seen = {key for key in keys if store.path(key).exists()}
    over = threading.Event()
    with progress_bar(console, "cells", len(keys), len(seen)) as advance:

        def look() -> None:
            while not over.wait(SECONDS_BETWEEN_LOOKS):
                for key in [one for one in keys if one not in seen and store.path(one).exists()]:
                    seen.add(key)
                    advance("")

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def show_shards(root: Path, swept: Sequence[Mapping[str, str]], console: Console) -> None:
    """Two lines for each job, and the path of the merged table."""
    for number, values in enumerate(swept, start=1):
        folder = root / SHARDS / str(number)
        title = ", ".join(f"{key}={value}" for key, value in values.items())
        for text in (f"{folder}: {title}", f"  {sentence(standing(main_rows(folder)))}"):
            console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print(str(root / f"{TABLE_NAME}.parquet"), highlight=False, soft_wrap=True)


def main_rows(folder: Path) -> pd.DataFrame:
    """The rows of a job that count for its winner."""
    rows = read_table(folder)
    return rows[~rows["sweep"]]
