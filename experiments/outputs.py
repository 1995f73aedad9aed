"""Output folders outputs/<command>/<n>: counted up, never overwritten; `latest` is the newest."""

import os
from pathlib import Path

LATEST = "latest"


def new_folder(root: str | Path, command: str) -> Path:
    """A new folder for one run of `command`; safe with several processes at a time."""
    base = Path(root) / command
    base.mkdir(parents=True, exist_ok=True)
    number = newest_number(base) + 1
    while True:
        try:
            (base / str(number)).mkdir()
            break
        except FileExistsError:
            number += 1
    _point_latest(base, number)
    return base / str(number)


def newest_number(base: Path) -> int:
    """The highest run number in `base`, 0 if there is none."""
    return max((int(path.name) for path in base.iterdir() if path.name.isdecimal()), default=0)


def _point_latest(base: Path, number: int) -> None:
    """Replace the link in one step: a reader sees the old folder or the new one."""
    temporary = base / f".{LATEST}-{number}-{os.getpid()}"
    temporary.symlink_to(str(number), target_is_directory=True)
    os.replace(temporary, base / LATEST)
