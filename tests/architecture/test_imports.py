"""The import rules hold; see importlinter.ini."""

import os
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parents[2]


def test_import_contracts_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    config = str(Path(__file__).with_name("importlinter.ini").relative_to(ROOT))
    assert lint_imports(config_filename=config, no_cache=True) == EXIT_STATUS_SUCCESS


def test_a_broken_rule_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules bite: a package that imports upwards is refused."""
    for name, text in (("below", "import above\n"), ("above", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    (tmp_path / "rules.ini").write_text(
        "[importlinter]\nroot_packages =\n    above\n    below\n"
        "[importlinter:contract:1]\nname = order\ntype = layers\nlayers =\n    above\n    below\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert lint_imports(config_filename="rules.ini", no_cache=True) != EXIT_STATUS_SUCCESS
    assert os.listdir(tmp_path)
