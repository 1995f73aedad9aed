"""Copies of the compiled engine with one rule changed, run as plain Python."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import simulator

SOURCES = Path(simulator.__file__).parent


class Mutation(NamedTuple):
    """Replace `old` by `new` in compiled_<file>.py, wherever it occurs (`times`: how often)."""

    rule: str
    file: str
    old: str
    new: str
    times: int = 1


def load_engine(folder: Path, mutation: Mutation | None = None) -> Callable:
    """simulate_compiled of the (changed) engine, its sources written to a package in `folder`."""
    package = f"engine_{abs(hash(mutation)):x}"
    home = folder / package
    home.mkdir(exist_ok=True)
    (home / "__init__.py").write_text("")
    for path in SOURCES.glob("compiled*.py"):
        text = path.read_text(encoding="utf-8")
        if mutation and path.stem == f"compiled_{mutation.file}":
            found = text.count(mutation.old)
            assert found == mutation.times, (
                f"{mutation.rule}: {mutation.old!r} occurs {found} times"
            )
            text = text.replace(mutation.old, mutation.new)
        text = text.replace("from simulator.compiled", f"from {package}.compiled")
        # Plain Python: nothing to compile, and the loop still calls the real decision kernels.
        text = text.replace("from policies.compile import", "from tests.simulator.plain import")
        text = text.replace("from policies.kernels import", "from policies.entries import")
        text = text.replace("from policies.passes import", "from policies.entries import")
        (home / path.name).write_text(text, encoding="utf-8")
    return _imported(folder, f"{package}.compiled").simulate_compiled


def _imported(folder: Path, name: str) -> ModuleType:
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
