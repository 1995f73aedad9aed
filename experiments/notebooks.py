"""Executes the notebooks in place: `python -m experiments.notebooks`, from `make notebooks`.

The same results give the same bytes: neither times nor the Python version are kept in the files.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from experiments.script import run_script

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
PATIENCE = 300  # seconds for the kernel to start, on a machine that has other work


def execute(path: Path) -> None:
    """Run all cells, in the notebook's folder, and keep the outputs; an error of a cell ends it."""
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(path.parent)}}
    NotebookClient(
        notebook, timeout=600, startup_timeout=PATIENCE, record_timing=False, resources=where
    ).execute()
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, path)


def main() -> int:
    """Every notebook in turn."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        print(f"executing {path.name}", flush=True)
        execute(path)
    return 0


if __name__ == "__main__":
    sys.exit(run_script(main))
