"""The kernel cache is named by what kernels are made of: an edited callee is never run as it was,
and edits elsewhere compile nothing anew."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import NumbaError

from policies.compile import (
    KEPT,
    KEPT_S,
    current_cache,
    inner,
    kernel,
    open_cache,
    prune,
    python_kernel,
)
from policies.sources import ROOT, bytes_hash, kernel_hash, kernel_sources

PROGRAM = """
import numpy as np
from policies.caller import caller
print(caller(1))
"""
KERNEL = "from policies.compile import kernel\n\n\n@kernel\n"


def run(root: Path, cache: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=root, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_editing_a_callee_in_another_file_takes_effect(tmp_path):
    package = tmp_path / "policies"
    package.mkdir()
    (tmp_path / "simulator").mkdir()
    for name in ("compile.py", "sources.py"):
        shutil.copy(ROOT / "policies" / name, package / name)
    (package / "__init__.py").write_text("")
    (package / "callee.py").write_text(KERNEL + "def callee(x):\n    return x + 1\n")
    (package / "caller.py").write_text(
        "from policies.callee import callee\n"
        + KERNEL
        + "def caller(x):\n    return 10 * callee(x)\n"
    )
    cache = tmp_path / "cache"
    assert run(tmp_path, cache) == "20"
    folders = {path.name for path in cache.iterdir()}
    assert run(tmp_path, cache) == "20"
    assert {path.name for path in cache.iterdir()} == folders, "an unchanged source compiles once"
    (package / "callee.py").write_text(KERNEL + "def callee(x):\n    return x + 2\n")
    assert run(tmp_path, cache) == "30"
    assert len(list(cache.iterdir())) == 2


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the packages that the hash is taken of."""
    for package in ("policies", "traces", "simulator"):
        ignored = shutil.ignore_patterns("data", "__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    return tmp_path


def edited(root: Path, path: str, text: str) -> bool:
    """Append `text` to a file: whether the hash changes."""
    before = kernel_hash(root, "1")
    with (root / path).open("a") as file:
        file.write(text)
    return kernel_hash(root, "1") != before


@pytest.mark.parametrize(
    "path",
    [
        "policies/zoo/spac.py", "policies/composed.py", "policies/session.py",
        "policies/balancers/assignment_reference.py", "policies/parts/movers.py",
        "simulator/reference.py", "simulator/compiled_run.py", "traces/reader.py",
    ],
)  # fmt: skip
def test_files_without_kernels_do_not_count(copied: Path, path: str) -> None:
    assert not edited(copied, path, "\nANOTHER = 1\n")


@pytest.mark.parametrize(
    "path",
    [
        "policies/kernels.py", "policies/movers/victims.py", "simulator/compiled_pass.py",
        "traces/caches.py",
        # Files of constants that kernels import, directly or through another one.
        "policies/kinds.py", "policies/state.py", "policies/costs.py",
        "simulator/compiled_buffers.py", "traces/runlog_schema.py",
    ],
)  # fmt: skip
def test_kernels_and_what_they_import_count(copied: Path, path: str) -> None:
    assert edited(copied, path, "\nANOTHER = 1\n")


def test_docstrings_and_comments_do_not_count(copied: Path) -> None:
    path = copied / "policies" / "credits.py"
    before = kernel_hash(copied, "1")
    text = path.read_text()
    changed = text.replace('"""Copies in flight allowed at', '"""The copies in flight allowed at')
    assert changed != text
    path.write_text("# A comment.\n" + changed)
    assert kernel_hash(copied, "1") == before
    path.write_text(changed.replace("LAYER_CAP = 4", "LAYER_CAP = 5"))
    assert kernel_hash(copied, "1") != before


def test_another_compiler_has_another_cache(copied: Path) -> None:
    assert kernel_hash(copied, "1") != kernel_hash(copied, "2")


def test_every_file_that_decorates_is_found() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in kernel_sources(ROOT)}
    for package in ("policies", "traces", "simulator", "runtime", "experiments"):
        for path in (ROOT / package).rglob("*.py"):
            lines = path.read_text().splitlines()
            if any(line.startswith(("@kernel", "@inlined")) for line in lines):
                assert path.relative_to(ROOT).as_posix() in found


def aged(base: Path, name: str, used_s: float) -> Path:
    folder = base / name
    folder.mkdir(parents=True)
    (folder / "kernel.nbc").write_text("machine code")
    os.utime(folder, (used_s, used_s))
    return folder


def test_old_caches_are_removed_and_nothing_else(tmp_path: Path) -> None:
    now_s = 10 * KEPT_S
    old = [aged(tmp_path, f"{number:016x}", now_s - KEPT_S - 10 - number) for number in range(8)]
    young = aged(tmp_path, "f" * 16, now_s - 5)
    others = [aged(tmp_path, "notes", 0.0), aged(tmp_path, "0123", 0.0)]
    file = tmp_path / ("e" * 16)
    file.write_text("a file")
    prune(tmp_path, now_s)
    assert [path.exists() for path in old] == [number < KEPT - 1 for number in range(8)]
    assert young.exists() and file.exists() and all(path.exists() for path in others)


def test_young_caches_stay_however_many(tmp_path: Path) -> None:
    young = [aged(tmp_path, f"{number:016x}", 1e6 - number) for number in range(2 * KEPT)]
    prune(tmp_path, 1e6)
    assert all(path.exists() for path in young)


def test_opening_a_cache_marks_it_as_used(tmp_path: Path) -> None:
    folder = aged(tmp_path, "a" * 16, 1000.0)
    assert open_cache(tmp_path, "a" * 16) == folder
    assert folder.stat().st_mtime > 1000.0 and (folder / "kernel.nbc").exists()


def test_the_name_of_a_cache_is_remembered_by_the_bytes_of_its_sources(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, source = tmp_path / "base", copied / "policies" / "credits.py"
    folder = current_cache(base, copied, "1")
    assert folder == base / kernel_hash(copied, "1")
    with monkeypatch.context() as without_parsing:
        without_parsing.setattr("policies.compile.kernel_hash", None)
        assert current_cache(base, copied, "1") == folder
    # A comment is other bytes and the same kernels; a number is not.
    text = source.read_text()
    source.write_text("# A comment.\n" + text)
    assert current_cache(base, copied, "1") == folder
    assert len(list(folder.glob("sources-*"))) == 2
    source.write_text(text.replace("LAYER_CAP = 4", "LAYER_CAP = 5"))
    assert current_cache(base, copied, "1") not in (folder, None)
    source.write_text(text)
    assert current_cache(base, copied, "2") != folder


def test_a_mark_in_a_folder_of_another_kind_counts_for_nothing(copied: Path, tmp_path) -> None:
    base = tmp_path / "base"
    (base / "notes").mkdir(parents=True)
    (base / "notes" / f"sources-{bytes_hash(copied, '1')}").touch()
    assert current_cache(base, copied, "1") == base / kernel_hash(copied, "1")


def test_a_new_cache_makes_room(tmp_path: Path) -> None:
    old = [aged(tmp_path, f"{number:016x}", 1000.0 + number) for number in range(KEPT + 2)]
    open_cache(tmp_path, "a" * 16)
    assert sum(path.exists() for path in old) == KEPT - 1


def counted(number):
    table = np.zeros(number, np.int64)
    for place in range(number):
        table[place] = place
    return table[number - 1]


def counted_without_arrays(number):
    """Another function: numba keeps compiled ones by name, whatever their options."""
    table = np.zeros(number, np.int64)
    return table[number - 1]


def test_a_kernel_that_says_so_makes_no_arrays() -> None:
    with pytest.raises(NumbaError, match=r"Only accept returning of array|NRT required"):
        kernel(allocates=False)(counted_without_arrays)(3)
    assert kernel(counted)(3) == 2


def test_division_by_zero_raises_nothing() -> None:
    @kernel
    def share(part, whole):
        return part / whole

    assert np.isnan(share(0.0, 0.0)) and share(1.0, 0.0) == np.inf


def test_an_inner_kernel_is_for_kernels_and_has_a_way_for_tests() -> None:
    @inner
    def doubled(number):
        return 2 * number

    assert python_kernel(doubled)(21) == 42
