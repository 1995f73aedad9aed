"""`spac study NAME`: a question about the method answered with a table, pictures and findings."""

import shutil
from collections.abc import Callable
from pathlib import Path

from omegaconf import DictConfig
from rich.console import Console

from experiments.outputs import copy_target
from experiments.studies import cells, formats, paper, theory
from experiments.terminal import terminal
from experiments.unknown import unknown
from policies.errors import UserError

Study = Callable[[DictConfig, Console], Path]
STUDIES: dict[str, Study] = {
    "theory": theory.run,
    "paper": paper.run,
    "formats": formats.run,
    "cells": cells.run,
}
KEPT = (".csv", ".png", ".md", ".yaml")


def run(config: DictConfig) -> int:
    """Run the named study, print its findings and its files."""
    if config.name is None:
        raise UserError(f"usage: spac study {'|'.join(STUDIES)} [key=value ...]")
    if config.name not in STUDIES:
        raise unknown("study", str(config.name), STUDIES)
    console, kept = terminal(), copy_target("copy_to", config.copy_to)
    folder = STUDIES[config.name](config, console)
    console.print((folder / "findings.md").read_text(encoding="utf-8"), highlight=False)
    if kept is not None:
        copy_results(folder, kept)
    for path in sorted(folder.iterdir()):
        console.print(str(path), highlight=False, soft_wrap=True)
    return 0


def copy_results(folder: Path, target: Path) -> None:
    """Tables as CSV, pictures and findings, as they are kept with the sources."""
    for path in folder.iterdir():
        if path.suffix in KEPT:
            shutil.copyfile(path, target / path.name)
