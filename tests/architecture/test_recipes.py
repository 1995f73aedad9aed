"""The recipes of ARCHITECTURE.md, their commands run as written in a copy of the sources.

A model with real weights: tests/runtime/test_model_recipe.py.
"""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from policies.errors import UserError
from traces.importers import Importer, import_trace
from traces.importers.routing import Given
from traces.reader import open_trace

ROOT = Path(__file__).parents[2]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
CHANGED = ("conf", "experiments")  # what a recipe may change, and what looks for it beside itself
LONGEST = 10
GIVEN = Given(name="m", experts=8, expert_bytes=1)


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


@pytest.mark.parametrize("heading", ["A policy of your own", "A model", "A machine", "An importer"])
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


@pytest.fixture
def importer(sources: Path) -> Path:
    """The file that the recipe for an importer shows."""
    (code,) = re.findall(r"```python\n(.*?)```", recipe("An importer"), re.DOTALL)
    path = sources / "my_format.py"
    path.write_text(code, encoding="utf-8")
    return path


def test_an_importer(sources: Path, importer: Path) -> None:
    follow("An importer", sources)
    trace = open_trace(sources / "my_trace")
    assert trace.load().experts.tolist() == [[[3, 1]], [[3, 2]]]
    assert trace.manifest.recorder == "import my_format.read"


@pytest.mark.parametrize(
    "content,said",
    [
        ("text;step;layer;chosen\n0;0;0;3 x\n", "line 2: experts is '3 x'"),
        ("text;layer;chosen\n0;0;3 1\n", "column 'position' is missing; found request, layer"),
        ("text;step;layer;chosen\n0;0;0;3 1;9\n", "more fields than the header names"),
        ("text;step;layer;chosen\n0;0;0;3 1\n0;1;0;3 1;9\n", "not a readable mine file"),
        ("text;step;layer;chosen\n0;0;0;3 1\n0;0;1;3 1\n0;1;0;3 1\n", "layer 1 is missing"),
        ("text;step;layer;chosen\n0;0;0;3 9\n", "expert number 9 in a model"),
    ],
)
def test_an_importer_of_one_s_own_refuses_as_ours_do(
    importer: Path, tmp_path: Path, content: str, said: str
) -> None:
    source = tmp_path / "routing.csv"
    source.write_text(content)
    known = {"mine": Importer(runpy.run_path(str(importer))["read"])}
    with pytest.raises(UserError, match=said) as refusal:
        import_trace(source, tmp_path / "trace", "mine", GIVEN, known)
    assert str(source) in str(refusal.value) and "\n" not in str(refusal.value)
    assert not (tmp_path / "trace").exists()
