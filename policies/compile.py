"""The one decorator for compiled kernels, with a disk cache that cannot go stale.

numba keys its cache by the file that holds a function. Editing a *callee* in another file leaves
the caller's old machine code in place, so the cache folder is named by a hash of every source that
kernels are made of (policies.sources).
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
import numba.core.caching

from policies.sources import ROOT, bytes_hash, kernel_hash

KEPT = 4  # cache folders, the newest
KEPT_S = 24 * 3600.0  # younger ones stay too: a process that uses one may still be running


def cache_base() -> Path:
    """Where the caches of all versions are: NUMBA_CACHE_DIR or the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    return Path(os.environ.get("NUMBA_CACHE_DIR", str(Path(home) / "moe-spac-lab")))


def open_cache(base: Path, name: str) -> Path:
    """The cache folder `name`, marked as used now; where it is new, folders of old versions go.
    A base that cannot be written is left alone: numba then says so, or finds another place."""
    folder = base / name
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            prune(base, time.time())
        os.utime(folder)
    except OSError:
        pass
    return folder


def prune(base: Path, now_s: float) -> None:
    """Remove the cache folders in `base` that are neither among the KEPT used last nor used in the
    last KEPT_S seconds; other things in `base` stay."""
    used = {path: path.stat().st_mtime for path in base.iterdir() if _is_ours(path)}
    for path in sorted(used, key=lambda path: -used[path])[KEPT:]:
        if now_s - used[path] > KEPT_S:
            shutil.rmtree(path, ignore_errors=True)


def _is_ours(path: Path) -> bool:
    return len(path.name) == 16 and set(path.name) <= set("0123456789abcdef") and path.is_dir()


def current_cache(base: Path, root: Path, version: str) -> Path:
    """The opened cache folder of the sources below `root`. A mark in it remembers the very bytes
    that it was named for: parsing them takes as long as importing numba."""
    mark = f"sources-{bytes_hash(root, version)}"
    for marked in base.glob(f"*/{mark}"):
        if _is_ours(marked.parent):
            return open_cache(base, marked.parent.name)
    folder = open_cache(base, kernel_hash(root, version))
    with suppress(OSError):
        (folder / mark).touch()
    return folder


# A process-wide setting, made before the first kernel is decorated: numba offers no narrower one.
numba.config.CACHE_DIR = str(  # type: ignore[attr-defined]
    current_cache(cache_base(), ROOT, numba.__version__)
)
# Likewise. Beyond level 1 the engine is no faster and takes longer to compile; the hit-counting
# loops of traces.caches would be, by about a tenth (LFU by more).
if "NUMBA_OPT" not in os.environ:
    numba.config.OPT = type(numba.config.OPT)(1)  # type: ignore[attr-defined]


# Division as in numpy: nothing to raise. No fast-math, no threads: the same bytes everywhere.
# No kernel is called from C, and each would be compiled once more for it.
OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(function: Any = None, *, allocates: bool = True) -> Any:
    """Compile `function` with numba, to be called from Python and from kernels; cached on disk.
    What makes no arrays and takes records of them should say `allocates=False`: taking an array out
    of a record then costs no atomic reference counts."""
    return _compiled(function, allocates)


def inner(function: Any = None, *, allocates: bool = False) -> Any:
    """Like `kernel`, to be called from kernels only: the code that unpacks Python's arguments, more
    than half of what is compiled for a small function, is left out. Tests call `python_kernel`.
    Only one that `allocates` may make arrays."""
    return _compiled(function, allocates, no_cpython_wrapper=True)


def inlined(function: Any) -> Any:
    """Like `inner`, but copied into its callers: for small functions called in loops, and for the
    glue between a kernel and its parts."""
    return _compiled(function, False, inline="always")


def python_kernel(compiled: Any) -> Any:
    """An `inner` or `inlined` kernel as Python can call it, by position: for tests and a look from
    a prompt. The call is compiled in every process, the kernel of an `inner` one is cached."""
    if compiled.targetoptions.get("inline") == "always":
        return numba.njit(error_model="numpy")(compiled.py_func)

    @numba.njit(error_model="numpy")
    def call(*arguments):  # type: ignore[no-untyped-def]
        return compiled(*arguments)

    return call


def _compiled(function: Any, allocates: bool, **options: Any) -> Any:
    decorator = numba.njit(**OPTIONS, **options, _nrt=allocates)  # type: ignore[call-overload]
    return decorator if function is None else decorator(function)
