"""Results of cells in files of their own, whole or absent, so that a killed sweep goes on where it
was: what is there is never played again, and what cannot be trusted is never used."""

import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from experiments.workers import run_cells
from traces.atomic import sha256_of, write_atomically

Cell = TypeVar("Cell")
FIELDS = {"cell", "result", "sha256", "attempt", "seconds", "process", "machine"}


@dataclass(frozen=True)
class CellStore:
    """A folder with one JSON file per finished cell, named by the cell's key. `attempt`: number of
    the start of the sweep under way, kept beside each result with the process that played it."""

    folder: Path
    attempt: int

    def path(self, key: str) -> Path:
        """File of the cell."""
        return self.folder / f"{key}.json"

    def write(self, key: str, result: Any, seconds: float) -> None:
        """Keep `result`, plain data; it is on disk when this returns."""
        content = {
            "cell": key,
            "result": result,
            "sha256": _digest(result),
            "attempt": self.attempt,
            "seconds": round(seconds, 6),
            "process": os.getpid(),
            "machine": platform.node(),
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path(key), (json.dumps(content) + "\n").encode())

    def kept(self, keys: Sequence[str]) -> tuple[dict[int, Any], list[Path]]:
        """(place in `keys` -> result, files that are no such result: cut off, changed, or of
        another cell). The latter count as not there."""
        results, damaged = {}, []
        for index, key in enumerate(keys):
            try:
                content = json.loads(self.path(key).read_bytes())
            except FileNotFoundError:
                continue
            except ValueError:  # no JSON or no text
                content = None
            if _is_result_of(key, content):
                results[index] = content["result"]
            else:
                damaged.append(self.path(key))
        return results, damaged


@dataclass(frozen=True)
class Keeping(Generic[Cell]):
    """`play`, with its result in `store` before it is returned; takes (key, cell)."""

    play: Callable[[Cell], Any]
    store: CellStore

    def __call__(self, keyed: tuple[str, Cell]) -> Any:
        key, cell = keyed
        begun = time.perf_counter()
        # As it will be read back: a continued sweep gives the same bytes as an uninterrupted one.
        result = json.loads(json.dumps(self.play(cell), default=_plain))
        self.store.write(key, result, time.perf_counter() - begun)
        return result


def run_kept(
    play: Callable[[Cell], Any],
    cells: Sequence[Cell],
    keys: Sequence[str],
    order: Sequence[int],
    workers: int,
    store: CellStore | None,
) -> Iterator[tuple[int, Any]]:
    """experiments.workers.run_cells for the cells of `order`, each kept in `store`, if there is
    one, by the process that played it."""
    count = max(1, min(workers, len(order)))
    if store is None:
        return run_cells(play, cells, order, count)
    return run_cells(Keeping(play, store), list(zip(keys, cells, strict=True)), order, count)


def key_of(*parts: object) -> str:
    """The name of a cell: a digest of the text of all that decides its result."""
    return sha256_of(repr(parts).encode())[:32]


def _is_result_of(key: str, content: object) -> bool:
    return (
        isinstance(content, dict)
        and set(content) == FIELDS
        and content["cell"] == key
        and content["sha256"] == _digest(content["result"])
    )


def _digest(result: Any) -> str:
    return sha256_of(json.dumps(result).encode())


def _plain(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no plain data")
