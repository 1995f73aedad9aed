"""Files that appear whole or not at all, so that a killed process leaves no half-written file."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

TEMPORARY_PREFIX = ".tmp-"  # pandas and pyarrow skip names that begin with a dot

Sync = Callable[[int], None]


def write_atomically(path: Path, data: bytes, sync: Sync = os.fsync) -> None:
    """Write `data` beside `path`, sync it to disk, then rename it into place.

    `sync` receives the file descriptor; a test passes a slow one to be killed inside the write.
    """
    temporary = path.with_name(TEMPORARY_PREFIX + path.name)
    try:
        with open(temporary, "wb") as stream:
            stream.write(data)
            stream.flush()
            sync(stream.fileno())
        os.replace(temporary, path)
    except BaseException as error:  # a full disk, Ctrl-C
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # writing knows no name, and a person needs one
        raise
    # The rename itself is only durable once the directory is synced.
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def sha256_of(data: bytes) -> str:
    """Hexadecimal SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()
