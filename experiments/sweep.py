"""Named sweeps: a folder that says what is played in it, refuses anything else, and is continued
by the same command after whatever stopped it."""

import fcntl
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from experiments.decision_file import as_yaml, choose_decision
from experiments.kept_cells import CellStore
from experiments.outputs import LATEST, new_folder, removed_if_unused
from experiments.trace_choice import bundled_names, find_trace
from experiments.values import as_list
from policies.errors import UserError
from policies.sources import source_hash
from traces.atomic import sha256_of, write_atomically
from traces.reader import open_trace

SWEEP_FILE = "sweep.json"
CELLS = "cells"
SHARDS = "shards"
LOCK = ".lock"
LONGEST_NAME = 100
# Keys that decide how, not what: they may change from one start of a sweep to the next.
FREE = ("workers", "pictures", "outputs", "sweep", "study", "trials")
SHOWN = 3  # differences named in a refusal
Settings = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where a comparison writes; `store`: its finished cells, None where it has no name."""

    folder: Path
    store: CellStore | None = None


@contextmanager
def open_place(config: DictConfig, command: str) -> Iterator[Place]:
    """A new numbered folder, or that of the sweep that the config names, locked against others."""
    if config.sweep is None:
        with removed_if_unused(new_folder(config.outputs, command)) as folder:
            yield Place(folder)
        return
    root, settings = sweep_folder(config, command), settings_of(config)
    if is_shard():
        shards, attempt = read_sweep(root)
        if settings not in shards:
            raise UserError(f"sweep {root.name}: {difference(shards, [settings])}")
        folder = root / SHARDS / str(shards.index(settings) + 1)
        with locked(folder):
            yield Place(folder, CellStore(root / CELLS, attempt))
        return
    with locked(root):
        yield Place(root, CellStore(root / CELLS, declare(root, [settings])))


def sweep_folder(config: DictConfig, command: str) -> Path:
    """Folder of the sweep that the config names."""
    return named_folder(config.outputs, command, "sweep", config.sweep)


def named_folder(outputs: str, command: str, key: str, name: object) -> Path:
    """Folder for what the user calls `name`; UserError unless it can be told from the numbered."""
    text = str(name)
    if not re.fullmatch(r"[\w-][\w.-]*", text) or text.isdecimal() or text == LATEST:
        raise UserError(
            f"{key}={text}: a name of letters, digits, - and _, with at least one letter, please"
        )
    if len(text) > LONGEST_NAME:
        raise UserError(
            f"{key}={text[:LONGEST_NAME]}...: {len(text)} letters, at most {LONGEST_NAME} please"
        )
    return Path(outputs) / command / text


def is_shard() -> bool:
    """True in a job of -m, whose sweep was declared before it was launched."""
    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


def settings_of(config: DictConfig) -> Settings:
    """All that decides the results of a job: dotted key -> value, digests of inputs and sources."""
    plain = OmegaConf.to_container(config, resolve=True)
    assert isinstance(plain, dict)
    settings = _flat({str(key): value for key, value in plain.items() if key not in FREE})
    names = bundled_names() if config.trace is None else as_list(config.trace)
    for name in names:
        settings[f"digest of trace {name}"] = open_trace(find_trace(str(name))).digest
    decision = choose_decision(config.decision)
    if decision is not None:
        settings["digest of decision times"] = sha256_of(as_yaml(decision).encode())
    settings["source hash of policies and simulator"] = source_hash()
    return dict(json.loads(json.dumps(settings)))  # as it is read back


def declare(root: Path, shards: Sequence[Settings], key: str = "sweep") -> int:
    """Note what the sweep, or what else `key` names, consists of, or compare it with what is noted;
    returns the number of this start, 1 for the first. UserError names the differences. Call it with
    the folder locked."""
    attempt = 1
    if (root / SWEEP_FILE).exists():
        before, attempt = read_sweep(root)
        if list(shards) != before:
            raise UserError(
                f"{key} {root.name} was begun with other settings: {difference(before, shards)}. "
                f"Give the same settings to continue it, or another {key}="
            )
        attempt += 1
    for number, one in enumerate(shards):
        if one in shards[:number]:
            raise UserError(f"sweep {root.name}: two of its jobs have the same settings")
    content = {"attempt": attempt, "jobs": list(shards)}
    write_atomically(root / SWEEP_FILE, (json.dumps(content, indent=1) + "\n").encode())
    return attempt


def read_sweep(root: Path) -> tuple[list[Settings], int]:
    """(settings of each job, number of the newest start)."""
    path = root / SWEEP_FILE
    try:
        content = json.loads(path.read_bytes())
        return list(content["jobs"]), int(content["attempt"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: cannot be read as the settings of a sweep ({type(error).__name__}); "
            "begin it anew with another sweep="
        ) from error


def difference(before: Sequence[Settings], now: Sequence[Settings]) -> str:
    """The first keys whose values differ, over all jobs, with both."""
    keys = list(dict.fromkeys(key for one in [*before, *now] for key in one))
    found = [
        f"{key} was {old}, is {new}"
        for key in keys
        if (old := _values(before, key)) != (new := _values(now, key))
    ]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ("; ".join(found[:SHOWN]) or "the order of its jobs is another") + more


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The folder, made if need be, for this process alone; the lock ends with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder}: another process is at work on this; wait for it or stop it"
            ) from None
        yield


def _flat(values: Mapping[str, Any], prefix: str = "") -> Settings:
    flat: Settings = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _values(shards: Sequence[Settings], key: str) -> str:
    """The different values of a key in the order of the jobs."""
    texts = [json.dumps(one[key]).replace('"', "") if key in one else "not set" for one in shards]
    return " / ".join(dict.fromkeys(texts))
