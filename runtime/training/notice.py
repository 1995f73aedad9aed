"""Collects the licence texts of the corpora into one NOTICE file."""

from __future__ import annotations

import sysconfig
from pathlib import Path

SUMMARY = """\
The models in this folder were trained on the texts listed here. No text is shipped with them
except the held-out prompts, which are short excerpts of the same sources.

code         Python standard library                  PSF licence, version 2
maths        set.mm of the Metamath project           CC0 1.0
             generated word problems                  part of this project
dictionary   WordNet 3.0, Princeton University        WordNet licence
manuals      SQLite documentation                     public domain
             PostgreSQL documentation                 PostgreSQL licence
prose        King James Bible                         public domain
             Jargon File 4.4.7                        public domain

The notices that came with the texts follow. Clauses about packaging scripts and program code
concern files that were not used.
"""


def write_notice(packages: Path, path: Path) -> None:
    """Summary followed by every package's copyright file and the interpreter's licence."""
    parts = [SUMMARY]
    for file in sorted((packages / "usr/share/doc").glob("*/copyright")):
        parts.append(section(file.parent.name, file.read_text(encoding="utf-8", errors="replace")))
    licence = Path(sysconfig.get_paths()["stdlib"]) / "LICENSE.txt"
    if licence.exists():
        parts.append(section("Python", licence.read_text(encoding="utf-8", errors="replace")))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts), encoding="utf-8")


def section(title: str, text: str) -> str:
    """A titled block."""
    return f"{'=' * 78}\n{title}\n{'=' * 78}\n\n{text.rstrip()}\n"
