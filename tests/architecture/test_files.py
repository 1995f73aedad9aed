"""Files stay small and carry one noun each; nothing runs text as code."""

import ast
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("policies", "traces", "simulator", "runtime", "experiments", "conf")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
LONGEST = 300
VAGUE = {"utils", "util", "helpers", "helper", "misc", "common", "manager"}


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("path", SOURCES + TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_long(path: Path) -> None:
    assert lines(path) <= LONGEST


def test_the_median_file_is_small() -> None:
    assert statistics.median(lines(path) for path in SOURCES if lines(path)) <= 130


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_say_something_and_nothing_is_evaluated(path: Path) -> None:
    assert path.stem not in VAGUE
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not {alias.name for alias in node.names} & {"pickle", "dill", "marshal"}
        if isinstance(node, ast.ImportFrom):
            assert node.module not in {"pickle", "dill", "marshal"}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"eval", "exec"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_is_for(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not tree.body or ast.get_docstring(tree)
