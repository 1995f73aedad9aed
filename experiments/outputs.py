"""Output folders outputs/<command>/<n>: counted up, never overwritten; `latest` is the newest."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.provenance import RUN_FILE
from policies.errors import UserError

LATEST = "latest"


def new_folder(root: str | Path, command: str) -> Path:
    """A new folder for one run of `command`; safe with several processes at a time."""
    if not root or not isinstance(root, str | Path):
        raise UserError(f"outputs={root}: give one folder, such as outputs=outputs")
    base = Path(root) / command
    base.mkdir(parents=True, exist_ok=True)
    number = newest_number(base) + 1
    while True:
        try:
            (base / str(number)).mkdir()
            break
        except FileExistsError:
            number += 1
    _point_latest(base)
    return base / str(number)


def copy_target(key: str, value: object) -> Path | None:
    """The folder that results are copied to as well, made at once: a command of an hour must not
    find at its end that it cannot write there. UserError for a file or a folder without leave."""
    if value is None:
        return None
    folder = Path(str(value)).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{key}={value}: cannot be a folder ({error.strerror})") from error
    if not os.access(folder, os.W_OK):
        raise UserError(f"{key}={value}: no leave to write in this folder")
    return folder


@contextmanager
def removed_if_unused(folder: Path) -> Iterator[Path]:
    """Inside, an error or Ctrl-C before anything but run.json was written removes `folder` again,
    so that `latest` stays with the last run that left something.
    """
    try:
        yield folder
    except BaseException:
        if {path.name for path in folder.iterdir()} <= {RUN_FILE}:
            _remove(folder)
        raise


def newest_number(base: Path) -> int:
    """The highest run number in `base`, 0 if there is none."""
    return max((int(path.name) for path in base.iterdir() if path.name.isdecimal()), default=0)


def _remove(folder: Path) -> None:
    (folder / RUN_FILE).unlink(missing_ok=True)
    folder.rmdir()
    link = folder.parent / LATEST
    if link.is_symlink() and os.readlink(link) == folder.name:
        _point_latest(folder.parent)


def _point_latest(base: Path) -> None:
    """Replace the link in one step: a reader sees the old folder or the new one."""
    number = newest_number(base)
    if number == 0:
        (base / LATEST).unlink()
        return
    # Several threads may point to the same newest folder: each through a link of its own.
    temporary = base / f".{LATEST}-{number}-{os.getpid()}-{threading.get_ident()}"
    temporary.symlink_to(str(number), target_is_directory=True)
    os.replace(temporary, base / LATEST)
