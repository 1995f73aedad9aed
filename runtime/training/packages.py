"""Finds the free texts: Debian packages fetched by apt, or a folder that already holds them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

PACKAGES = (
    "metamath-databases",
    "dict-wn",
    "sqlite3-doc",
    "postgresql-doc-*",
    "bible-kjv-text",
    "jargon-text",
)


class CorpusError(RuntimeError):
    """A text source is missing; the message names it and the remedy in one line."""


def unpacked_packages(cache: Path, corpus_dir: Path | None = None) -> Path:
    """Folder that contains ``usr/...`` of all packages.

    ``corpus_dir`` may hold ``.deb`` files or an unpacked tree; without it apt downloads into
    ``cache``. Raises CorpusError when apt, dpkg-deb or a package is missing.
    """
    if corpus_dir is not None and (corpus_dir / "usr").is_dir():
        return corpus_dir
    root = cache / "unpacked"
    if (root / "complete").exists():
        return root
    archives = download(cache / "archives") if corpus_dir is None else corpus_dir
    if not archives.is_dir():
        raise CorpusError(f"corpus_dir {archives} does not exist")
    require_program("dpkg-deb")
    for pattern in PACKAGES:
        found = sorted(archives.glob(f"{pattern}_*.deb"))
        if not found:
            raise CorpusError(f"no {pattern}_*.deb in {archives}; run apt-get download there")
        root.mkdir(parents=True, exist_ok=True)
        subprocess.run(["dpkg-deb", "-x", str(found[-1]), str(root)], check=True)
    (root / "complete").touch()
    return root


def download(folder: Path) -> Path:
    """Fetch the missing packages with ``apt-get download`` into ``folder`` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in PACKAGES:
        if any(folder.glob(f"{pattern}_*.deb")):
            continue
        require_program("apt-get")
        name = resolve(pattern)
        done = subprocess.run(
            ["apt-get", "download", name], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise CorpusError(f"apt-get download {name} failed ({reason}); pass corpus_dir instead")
    return folder


def resolve(pattern: str) -> str:
    """The installable name behind a package pattern; ``*`` stands for a release number."""
    if not pattern.endswith("*"):
        return pattern
    prefix = pattern[:-1]
    require_program("apt-cache")
    listed = subprocess.run(
        ["apt-cache", "pkgnames", prefix], capture_output=True, text=True, check=False
    ).stdout.split()
    releases = [name for name in listed if re.fullmatch(re.escape(prefix) + r"\d+", name)]
    if not releases:
        raise CorpusError(f"apt knows no package {pattern}; pass corpus_dir instead")
    return max(releases, key=lambda name: int(name[len(prefix) :]))


def require_program(name: str) -> None:
    """Raise CorpusError unless ``name`` is on the path."""
    if shutil.which(name) is None:
        raise CorpusError(f"{name} is not installed; pass corpus_dir with the unpacked texts")
