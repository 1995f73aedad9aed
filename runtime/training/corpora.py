"""Builds the five workload corpora as lists of plain ASCII documents.

code: Python's standard library; maths: Metamath statements and generated word problems;
dictionary: WordNet; manuals: SQLite and PostgreSQL; prose: King James Bible and Jargon File.
"""

from __future__ import annotations

import gzip
import html
import random
import re
import subprocess
import sysconfig
import unicodedata
from pathlib import Path

from runtime.training.packages import CorpusError
from runtime.training.recipe import CorpusRecipe
from runtime.training.word_problems import problem_sheet

SMALLEST_DOCUMENT = 400
LARGEST_DOCUMENT = 40_000


def build_corpora(packages: Path, recipe: CorpusRecipe) -> dict[str, list[str]]:
    """Shuffled documents per workload, at most ``recipe.bytes_per_workload`` bytes each."""
    half = recipe.bytes_per_workload // 2
    sources = {
        "code": [(python_sources(), recipe.bytes_per_workload)],
        "maths": [(metamath_statements(packages), half), (word_problems(recipe.seed, half), half)],
        "dictionary": [(wordnet_entries(packages), recipe.bytes_per_workload)],
        "manuals": [(manual_pages(packages), recipe.bytes_per_workload)],
        "prose": [(bible(packages) + jargon(packages), recipe.bytes_per_workload)],
    }
    corpora = {}
    for workload, parts in sources.items():
        chosen = [text for documents, limit in parts for text in select(documents, limit, recipe)]
        random.Random(f"{recipe.seed}-{workload}").shuffle(chosen)
        corpora[workload] = chosen
    return corpora


def select(documents: list[str], limit: int, recipe: CorpusRecipe) -> list[str]:
    """Cleaned documents in seeded order until ``limit`` bytes are reached."""
    order = list(documents)
    random.Random(recipe.seed).shuffle(order)
    chosen: list[str] = []
    total = 0
    for text in order:
        text = plain(text)[:LARGEST_DOCUMENT]
        if len(text) < SMALLEST_DOCUMENT:
            continue
        chosen.append(text)
        total += len(text)
        if total >= limit:
            break
    return chosen


def plain(text: str) -> str:
    """ASCII only, no tabs, no trailing blanks, at most one empty line in a row."""
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    text = text.replace("\r", "").replace("\t", "    ")
    text = re.sub(r" +\n", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def pieces(text: str, size: int) -> list[str]:
    """Cut at the first line end after every ``size`` characters."""
    parts = []
    start = 0
    while start < len(text):
        end = text.find("\n", min(start + size, len(text)))
        end = len(text) if end < 0 else end + 1
        parts.append(text[start:end])
        start = end
    return parts


def python_sources() -> list[str]:
    """Modules of the running interpreter's standard library without its tests."""
    root = Path(sysconfig.get_paths()["stdlib"])
    skipped = {"site-packages", "test", "tests", "idlelib", "lib2to3", "pydoc_data", "encodings"}
    files = [p for p in sorted(root.rglob("*.py")) if not skipped & set(p.relative_to(root).parts)]
    if not files:
        raise CorpusError(f"no Python sources under {root}")
    return [path.read_text(encoding="utf-8", errors="ignore") for path in files]


def metamath_statements(packages: Path) -> list[str]:
    """Comments and statements of set.mm; proofs and attribution lines are dropped."""
    text = find(packages, "usr/share/metamath/databases/set.mm").read_text(errors="ignore")
    text = re.sub(r"\$=.*?\$\.", "$.", text, flags=re.S)
    credit = r"\((?:Contributed|Revised|Proof shortened)\s+by[^)]*\)"
    discouraged = r"\((?:New usage|Proof modification)\s+is\s+discouraged\.\)"
    text = re.sub(f"{credit}|{discouraged}", "", text)
    return pieces(re.sub(r"\n\s*\n+", "\n\n", text), 8000)


def word_problems(seed: int, size: int) -> list[str]:
    """Sheets of generated problems with worked solutions, ``size`` bytes in all."""
    source = random.Random(f"{seed}-word-problems")
    sheets: list[str] = []
    total = 0
    while total < size:
        sheets.append(problem_sheet(source))
        total += len(sheets[-1])
    return sheets


def wordnet_entries(packages: Path) -> list[str]:
    """Dictionary entries in alphabetical order; an entry repeated for a synonym is kept once."""
    path = find(packages, "usr/share/dictd/wn.dict.dz")
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "ignore")
    entries = re.findall(r"^(\S[^\n]*\n)((?: +[^\n]*\n)+)", text, flags=re.M)
    seen: set[str] = set()
    kept = []
    for headword, body in entries:
        if headword.startswith("00-database") or body in seen:
            continue
        seen.add(body)
        kept.append(headword + body)
    return pieces("".join(kept), 6000)


def manual_pages(packages: Path) -> list[str]:
    """SQLite and PostgreSQL documentation without release notes and pages of pure links."""
    skipped = re.compile(r"release|changes|matrix|hlr|bookindex|backlink|crossref|syntaxdiagrams")
    files = sorted(find(packages, "usr/share/doc/sqlite3").rglob("*.html"))
    for folder in sorted((packages / "usr/share/doc").glob("postgresql-doc-*")):
        files += sorted(folder.rglob("*.html"))
    texts = [
        without_markup(path.read_text(encoding="utf-8", errors="ignore"))
        for path in files
        if not skipped.search(path.name)
    ]
    return [part for text in texts for part in pieces(plain(text), 8000)]


def without_markup(page: str) -> str:
    """Readable text of an HTML page, one block element per line."""
    page = re.sub(r"<(script|style|svg|head)\b.*?</\1>", "", page, flags=re.S | re.I)
    page = re.sub(r"<(?:h\d|li|dt)\b[^>]*>", "\n\n", page, flags=re.I)
    page = re.sub(r"</?(?:p|div|tr|table|pre|br|ul|ol|dl|dd)\b[^>]*>", "\n", page, flags=re.I)
    page = html.unescape(re.sub(r"<[^>]+>", "", page))
    return re.sub(r"\n\s*\n+", "\n\n", page)


def bible(packages: Path) -> list[str]:
    """King James text; the package stores it as LZW windows behind a table of offsets."""
    data = find(packages, "usr/lib/bible.data").read_bytes()
    magic = b"\x1f\x9d\x90"
    first = data.find(magic)
    table = [int.from_bytes(data[at : at + 4], "big") for at in range(0x5C, first, 4)]
    windows = sorted({offset for offset in table if first <= offset < len(data)})
    text = b""
    for start, end in zip(windows, [*windows[1:], len(data)], strict=True):
        # The magic number is stored once, in front of the first window.
        window = magic + data[start:end]
        done = subprocess.run(["gzip", "-dc"], input=window, capture_output=True, check=False)
        if not done.stdout:
            raise CorpusError(f"window at byte {start} of bible.data cannot be expanded")
        text += done.stdout
    return pieces(text.decode("ascii", "ignore"), 6000)


def jargon(packages: Path) -> list[str]:
    """The Jargon File."""
    path = find(packages, "usr/share/doc/jargon-text/jargon.txt.gz")
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "ignore")
    return pieces(plain(text), 6000)


def find(packages: Path, name: str) -> Path:
    """``packages / name``, or CorpusError."""
    path = packages / name
    if not path.exists():
        raise CorpusError(f"{name} is missing under {packages}; unpack its package there")
    return path
