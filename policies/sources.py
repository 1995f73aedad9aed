"""Hashes of this project's own sources: of all that decides a result, and of the compiled kernels.

A kernel's machine code holds that of its callees and the constants it imports, so its cache folder
is named after all of them: the files that use a decorator of policies.compile, and whatever these
import from the project, directly or not. Comments and docstrings do not count there.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

DECORATORS = "policies.compile"
PACKAGES = ("policies", "traces", "simulator")
DECIDING = ("policies", "simulator")
ROOT = Path(__file__).resolve().parent.parent
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def source_hash() -> str:
    """Hash of all Python sources that decide a simulation, as 16 hex digits; part of every result
    file."""
    digest = hashlib.sha256()
    for folder in DECIDING:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def kernel_sources(root: Path) -> dict[Path, ast.Module]:
    """The syntax trees of the files with kernels below `root`, and of all that they import there,
    by path."""
    waiting = [
        path
        for package in PACKAGES
        for path in (root / package).rglob("*.py")
        if f"from {DECORATORS} import" in path.read_text(encoding="utf-8")
    ]
    trees: dict[Path, ast.Module] = {}
    while waiting:
        path = waiting.pop()
        if path not in trees:
            trees[path] = ast.parse(path.read_bytes(), str(path))
            waiting.extend(_imported(trees[path], root))
    return trees


def kernel_hash(root: Path, version: str) -> str:
    """16 hex digits that change when a kernel below `root`, or anything it imports, does; `version`
    names the compiler."""
    digest = hashlib.sha256(version.encode())
    for path, tree in sorted(kernel_sources(root).items()):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(ast.dump(_without_docstrings(tree)).encode())
    return digest.hexdigest()[:16]


def bytes_hash(root: Path, version: str) -> str:
    """16 hex digits that change with any byte that kernel_hash may look at: known in milliseconds,
    but another one for every comment."""
    digest = hashlib.sha256(version.encode())
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(content)} ".encode())
            digest.update(content)
    return digest.hexdigest()[:16]


def _imported(tree: ast.Module, root: Path) -> Iterator[Path]:
    """Files below `root` that a module imports, wherever in its text; `from package import name`
    may mean a module `name`."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.partition(".")[0] in PACKAGES:
                module = root.joinpath(*name.split("."))
                for path in (module.with_suffix(".py"), module / "__init__.py"):
                    if path.is_file():
                        yield path


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree
