"""Run logs by path: a run log directory, or the output folder that holds exactly one."""

from collections.abc import Sequence
from pathlib import Path

from experiments.outcome import RUNLOGS
from policies.errors import UserError
from traces.run_info import RUN_NAME, part_path

MEASURED = "runlog"  # where `spac run` keeps its own


def runlog_directories(paths: Sequence[str]) -> list[Path]:
    """The run log directory of each of `paths`."""
    return [runlog_directory(Path(path)) for path in paths]


def runlog_directory(path: Path) -> Path:
    """`path` itself, its `runlog`, or the only one in its `runlogs`; UserError otherwise."""
    if not path.exists():
        raise UserError(f"{path}: no such folder; give a run log or an output folder with one")
    candidates = [path, path / MEASURED, *sorted((path / RUNLOGS).glob("*"))]
    found = [one for one in candidates if is_runlog(one)]
    if not found:
        raise UserError(f"{path}: holds no run log; spac simulate and spac run write one")
    if len(found) > 1 and found[0] != path:
        listed = ", ".join(str(one) for one in found)
        raise UserError(f"{path}: holds {len(found)} run logs, name one of them: {listed}")
    return found[0]


def is_runlog(path: Path) -> bool:
    """Whether `path` has a run log's description and at least one part or table folder."""
    return (path / RUN_NAME).is_file() and part_path(path, "passes", 0).parent.is_dir()
