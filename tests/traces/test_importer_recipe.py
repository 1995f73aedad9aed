"""The recipe for an importer in ARCHITECTURE.md: its code is taken from there and followed."""

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from policies.errors import UserError
from traces.check import check_trace
from traces.importers import IMPORTERS, Importer, import_trace
from traces.importers.routing import Given, Routing

ROOT = Path(__file__).resolve().parents[2]
GIVEN = Given(name="m", experts=8, expert_bytes=1)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The module that a reader of the recipe would write, imported as any file is."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.split("**An importer**")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(code.strip().splitlines()) <= 25
    path = tmp_path_factory.mktemp("recipe") / "words.py"
    path.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("words", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def importers(recipe: ModuleType) -> dict[str, Importer]:
    read: Callable[[Path], Routing] = recipe.read_words
    return {**IMPORTERS, "words": Importer(read, recipe.recognises_words)}


def test_a_file_goes_through(importers: dict[str, Importer], tmp_path: Path) -> None:
    """Two layers with two experts each, separated by |, one token a line."""
    source = tmp_path / "routing.words"
    source.write_text("3 1|0 2\n3 4|5 2\n7 1|0 6\n", encoding="utf-8")
    trace = import_trace(source, tmp_path / "trace", given=GIVEN, importers=importers)
    expected = np.array([[[3, 1], [0, 2]], [[3, 4], [5, 2]], [[7, 1], [0, 6]]])
    np.testing.assert_array_equal(trace.load().experts, expected)
    assert trace.manifest.recorder == "import words"
    assert check_trace(trace.path).ok


def test_its_refusal_is_one_line(importers: dict[str, Importer], tmp_path: Path) -> None:
    source = tmp_path / "routing.words"
    source.write_text("3 x|0 2\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"routing\.words: .*'x'"):
        import_trace(source, tmp_path / "trace", given=GIVEN, importers=importers)
    assert not (tmp_path / "trace").exists()
