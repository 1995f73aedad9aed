"""Bookkeeping of a resumable run: what a stage was started with, and what it cost."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any


class RecipeMismatch(RuntimeError):
    """A folder holds work of another recipe; continuing would mix the two."""


def run_stage(
    work: Path, stage: str, settings: tuple[Any, ...], action: Callable[[], None]
) -> None:
    """Run ``action`` unless this stage finished before; its cost is added to ``timing.json``.

    ``settings`` determine the result. Raises RecipeMismatch if the
    stage was started with other ones.
    """
    claim(work, stage, *settings)
    finished = work / "finished" / stage
    if finished.exists():
        return
    with timed(work, stage):
        action()
    finished.parent.mkdir(exist_ok=True)
    finished.touch()


def claim(work: Path, stage: str, *settings: Any) -> None:
    """Record the settings a stage starts with, or compare them with the recorded ones.

    Settings are frozen records or plain numbers.
    """
    path = work / "settings" / f"{stage}.json"
    plain = [asdict(part) if is_dataclass(part) else part for part in settings]
    wanted = json.dumps(plain, indent=2, sort_keys=True) + "\n"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != wanted:
        raise RecipeMismatch(f"{work} was started with another {stage} recipe; use a new folder")


@contextmanager
def timed(work: Path, stage: str) -> Iterator[None]:
    """Add wall and CPU seconds (children included) of the block to ``timing.json``."""
    path = work / "timing.json"
    wall, processor = time.perf_counter(), processor_seconds()
    yield
    costs = read_timing(work)
    spent = costs.setdefault(stage, {"wall_seconds": 0.0, "cpu_seconds": 0.0})
    spent["wall_seconds"] += time.perf_counter() - wall
    spent["cpu_seconds"] += processor_seconds() - processor
    path.write_text(json.dumps(costs, indent=2) + "\n", encoding="utf-8")


def read_timing(work: Path) -> dict[str, dict[str, float]]:
    """Costs per stage so far; a stage interrupted by a kill counts only from its restart."""
    path = work / "timing.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def processor_seconds() -> float:
    """User and system seconds of this process and its finished children."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
