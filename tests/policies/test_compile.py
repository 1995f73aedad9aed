"""The kernel cache is named by the kernel sources: an edited callee is never run as it was."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import numpy as np
from policies.caller import caller
print(caller(1))
"""


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
    source = Path(__file__).resolve().parents[2] / "policies" / "compile.py"
    (package / "__init__.py").write_text("")
    (package / "compile.py").write_text(source.read_text())
    kernel = "from policies.compile import kernel\n\n\n@kernel\n"
    (package / "callee.py").write_text(kernel + "def callee(x):\n    return x + 1\n")
    (package / "caller.py").write_text(
        "from policies.callee import callee\n"
        + kernel
        + "def caller(x):\n    return 10 * callee(x)\n"
    )
    cache = tmp_path / "cache"
    assert run(tmp_path, cache) == "20"
    folders = {path.name for path in cache.iterdir()}
    assert run(tmp_path, cache) == "20"
    assert {path.name for path in cache.iterdir()} == folders, "an unchanged source compiles once"
    (package / "callee.py").write_text(kernel + "def callee(x):\n    return x + 2\n")
    assert run(tmp_path, cache) == "30"
    assert len(list(cache.iterdir())) == 2
