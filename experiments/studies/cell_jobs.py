"""The runs of `study cells`: traces are halved and shuffled into a folder of their own, then every
policy that a trace serves is played in every cell."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from experiments.commands import CONF, options
from experiments.comparison import Job, serves
from experiments.machine import Capacity, Machine
from experiments.policy_choice import PolicyChoice, choose_policies
from experiments.setting import Setting
from experiments.studies.cells_file import CellsFile, CellTrace
from experiments.trace_choice import Workload, find_trace, open_workload
from experiments.values import as_mapping, whole_number
from policies.errors import UserError
from simulator.draft_profile import draft_profile
from simulator.foresight import is_clairvoyant
from simulator.hardware import hardware_profile
from traces.halves import write_half, write_null
from traces.importers import import_trace
from traces.reader import Trace, open_trace

CELL, SHORT, NO_DRAFT, NULL = "cell", "short window", "no draft", "shuffled"
OURS = "ours"


@dataclass(frozen=True)
class CellRun:
    """A job and what it is for: CELL, SHORT, NO_DRAFT or NULL."""

    part: str
    job: Job


@dataclass(frozen=True)
class CellWorld:
    """One trace of the cells with its shuffled twin and the machine that plays it."""

    workload: Workload
    shuffled: Workload
    machine: Machine


def make_worlds(
    cells: CellsFile, config: DictConfig, data: Path | None, folder: Path
) -> list[CellWorld]:
    """Write the traces of the cells into `folder`. Routing files without a data folder are an
    error, not left out."""
    split = str(config.split)
    if split not in ("development", "held_out"):
        raise UserError(f"split={split}: there are development and held_out")
    seed = whole_number("seed", config.seed)
    worlds = []
    for number, entry in enumerate(cells.traces):
        place = folder / str(number)
        trace = _source(entry, data, place)
        half = write_half(trace, split, entry.requests, place / "half")  # type: ignore[arg-type]
        null = write_null(half, seed, place / "null")
        workload = open_workload(half.path, entry.acceptance, seed)
        shuffled = open_workload(null.path, entry.acceptance, seed)
        worlds.append(CellWorld(workload, shuffled, _machine(entry, config)))
    return worlds


def plan_cells(cells: CellsFile, worlds: list[CellWorld]) -> list[CellRun]:
    """All runs, trace by trace."""
    runs: list[CellRun] = []
    for world in worlds:
        for ratio in cells.cache_ratios:
            runs += _cell_runs(cells, world, ratio)
    return runs


def _cell_runs(cells: CellsFile, world: CellWorld, ratio: float) -> Iterator[CellRun]:
    replay = world.workload.replay
    names = options("policy") if cells.policies is None else list(cells.policies)
    choices = [one for one in choose_policies(names) if serves(replay, one)]
    foreseeing = [one for one in choices if is_clairvoyant(one.build())]
    if not foreseeing or {one.name for one in choices} - {one.name for one in foreseeing} <= {OURS}:
        raise UserError(
            f"cells: of policies, {world.workload.name} can be played by "
            f"{', '.join(one.name for one in choices) or 'none'}; needed are a clairvoyant one, "
            f"such as foresight, and one to compare {OURS} with"
        )
    gammas = [window - 1 for window in cells.windows]
    for gamma in gammas:
        for choice in choices:
            yield CellRun(CELL, _job(world.workload, world, ratio, gamma, choice))
        for choice in choose_policies(cells.nulls) if cells.nulls else []:
            yield CellRun(NULL, _job(world.shuffled, world, ratio, gamma, choice))
    short = (choose_policies(cells.tuned) if cells.tuned else []) + foreseeing
    for gamma in cells.short_gammas:
        for choice in short:
            if gamma < min(gammas) and serves(replay, choice):
                yield CellRun(SHORT, _job(world.workload, world, ratio, gamma, choice))
    for choice in choose_policies(cells.no_draft) if cells.no_draft else []:
        job = _job(world.workload, world, ratio, 0, choice)
        yield CellRun(NO_DRAFT, replace(job, setting=replace(job.setting, speculation=False)))


def _job(
    workload: Workload, world: CellWorld, ratio: float, gamma: int, choice: PolicyChoice
) -> Job:
    setting = Setting(
        machine=world.machine, capacity=Capacity(cache_ratio=ratio), gamma=gamma, staging=4,
        launch="late", lanes="concurrent", requests=None,
    )  # fmt: skip
    return Job(
        world.workload.name, workload.path, workload.acceptance, workload.seed, setting, choice,
        choice.label,
    )  # fmt: skip


def _source(entry: CellTrace, data: Path | None, place: Path) -> Trace:
    if entry.file is None:
        return open_trace(find_trace(str(entry.trace)))
    if data is None:
        raise UserError(
            f"cells: {entry.file} is a routing file; give data=FOLDER (or set SPAC_DATA) or a "
            "cells= file without it"
        )
    return import_trace(data / entry.file, place / "whole")


def _machine(entry: CellTrace, config: DictConfig) -> Machine:
    def group(name: str, option: str) -> dict[str, Any]:
        return as_mapping(OmegaConf.load(CONF / name / f"{option}.yaml"))

    return Machine(
        hardware_profile(as_mapping(config.hardware), "hardware"),
        group("model", entry.model),
        draft_profile(group("draft", entry.draft), "draft"),
        whole_number("context", config.context),
        None if config.dtype is None else str(config.dtype),
    )
