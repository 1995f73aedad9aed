"""The recipes of ARCHITECTURE.md, their commands run as written in a copy of the sources.

A model with real weights: tests/runtime/test_model_recipe.py; an importer: tests/traces.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
CHANGED = ("conf", "experiments")  # what a recipe may change, and what looks for it beside itself
LONGEST = 10


def recipe(heading: str) -> str:
    """From its bold heading to the next one."""
    begin = ARCHITECTURE.index(f"**{heading}**")
    end = re.compile(r"^(\*\*|## )", re.MULTILINE).search(ARCHITECTURE, begin + len(heading) + 4)
    assert end is not None
    return ARCHITECTURE[begin : end.start()]


def commands(heading: str) -> list[str]:
    (block,) = re.findall(r"```sh\n(.*?)```", recipe(heading), re.DOTALL)
    return block.strip().splitlines()


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The project as a checkout that a recipe may change, with `spac` in bin/. What is only read
    is imported from where it is, so that its compiled kernels are found."""
    folder, imported = tmp_path / "checkout", tmp_path / "imported"
    folder.mkdir()
    imported.mkdir()
    for name in CHANGED:
        ignored = shutil.ignore_patterns("results", "__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        (imported / name).symlink_to(folder / name)
    for name in ("policies", "traces"):  # a recipe copies from there; bundled traces
        (folder / name).symlink_to(ROOT / name)
    path = f"{imported}{os.pathsep}{ROOT}"
    spac = folder / "bin" / "spac"
    spac.parent.mkdir()
    spac.write_text(
        f'#!/bin/sh\nexec env PYTHONPATH="{path}" "{sys.executable}" -P -m experiments "$@"\n'
    )
    spac.chmod(0o755)
    return folder


def follow(heading: str, sources: Path) -> str:
    """Output of the recipe's commands; the first that fails ends the test."""
    environment = os.environ | {"PATH": f"{sources / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    shown = ""
    for line in commands(heading):
        done = subprocess.run(
            ["sh", "-c", line], cwd=sources, env=environment, capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout[-1000:]}{done.stderr[-2000:]}"
        shown += done.stdout
    return shown


def played(sources: Path) -> pd.DataFrame:
    return pd.read_parquet(sources / "outputs/compare/latest/table.parquet").set_index("policy")


@pytest.mark.parametrize("heading", ["A policy of your own", "A model", "A machine"])
def test_a_recipe_is_short(heading: str) -> None:
    lines = [line for line in recipe(heading).splitlines() if line.strip()]
    assert len([line for line in lines if not line.startswith("```")]) <= LONGEST


def test_a_policy(sources: Path) -> None:
    shown = follow("A policy of your own", sources)
    assert "decisions checked, every rule kept" in shown
    own = played(sources).loc["my_policy.MyPolicy"]
    assert own["engine"] == "reference" and own["tokens_per_second"] > 0
    assert (sources / "outputs/run/latest").is_dir()


def test_a_model_as_if(sources: Path) -> None:
    follow("A model", sources)
    rows = played(sources)
    assert set(rows["model"]) == {"my_model"} and set(rows["model_layers"]) == {24}
    assert not (ROOT / "conf/model/my_model.yaml").exists(), "the copy was changed, not the project"


def test_a_machine(sources: Path) -> None:
    follow("A machine", sources)
    rows = played(sources)
    assert set(rows["hardware"]) == {"my_machine"}
    assert "50_000_000_000" in (sources / "my_machine.yaml").read_text()
