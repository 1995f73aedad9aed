"""Every notebook runs from finished files, and the outputs kept in it are those that it gives."""

import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from experiments.notebooks import PATIENCE

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LARGEST = 1_000_000  # bytes, outputs included
EVERY_NOTEBOOK = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def text_outputs(notebook: Any) -> list[str]:
    """What each code cell shows, pictures left out: their bytes depend on fonts."""
    shown = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            shown.append(data.get("text/markdown") or data.get("text/plain") or output.get("text"))
            if "image/png" in data:
                shown[-1] = "picture"
    return shown


def test_the_four_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "first_look_at_a_trace", "from_simulation_to_machine", "recency_beats_frequency",
        "what_the_window_buys",
    ]  # fmt: skip


@EVERY_NOTEBOOK
def test_it_is_small_and_was_executed(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert text_outputs(notebook).count("picture") >= 3
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert str(ROOT.parent) + os.sep not in path.read_text(encoding="utf-8")


@EVERY_NOTEBOOK
def test_it_gives_what_it_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executed anew; words, numbers and tables equal the committed ones."""
    before = sorted(ROOT.glob("outputs/*/*"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, as_version=4)
    kept = text_outputs(notebook)
    where = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=300, startup_timeout=PATIENCE, resources=where).execute()
    assert text_outputs(notebook) == kept, f"{path.name}: run `make notebooks` and look at it"
    assert sorted(ROOT.glob("outputs/*/*")) == before, "a notebook only reads"


@EVERY_NOTEBOOK
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(
        r"\]\(([^)#]+)\)", "\n".join(c.source for c in nbformat.read(path, 4).cells)
    )
    for target in targets:
        assert (path.parent / target).exists(), target
