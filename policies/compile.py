"""The one decorator for compiled kernels, with a disk cache that cannot go stale.

numba keys its cache by the file that holds a function. Editing a *callee* in another file leaves
the
caller's old machine code in place, so the cache folder is named by a hash of every kernel source.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numba
import numba.core.caching

KERNEL_FOLDERS = ("policies", "simulator")


def source_hash() -> str:
    """Hash of all Python sources that may hold kernels, as 16 hex digits; part of every result
    file."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256(numba.__version__.encode())
    for folder in KERNEL_FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where compiled kernels are kept: NUMBA_CACHE_DIR or the user's cache, then the source
    hash."""
    home = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    base = os.environ.get("NUMBA_CACHE_DIR", str(Path(home) / "moe-spac-lab"))
    return Path(base) / source_hash()


# A process-wide setting, made before the first kernel is decorated: numba offers no narrower one.
numba.config.CACHE_DIR = str(cache_folder())  # type: ignore[attr-defined]


def kernel(function: Any) -> Any:
    """Compile `function` with numba: cached on disk, no fast-math, no threads (same bytes
    everywhere)."""
    return numba.njit(cache=True)(function)


def inlined(function: Any) -> Any:
    """Like `kernel`, but copied into its callers: for small functions called in loops, where
    passing a record of
    arrays would cost two atomic reference counts per array and call."""
    return numba.njit(cache=True, inline="always")(function)
