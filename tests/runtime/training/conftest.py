"""One single-thread tiny training run shared by the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from runtime.training.pipeline import train_pair
from tests.runtime.training.tiny_texts import TINY_RECIPE, write_package_tree


@pytest.fixture(autouse=True)
def one_thread():
    """Tests share two cores with others; a spinning thread pool would slow both."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def package_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_package_tree(tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="session")
def finished_run(package_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a complete tiny run."""
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("run")
    train_pair(TINY_RECIPE, out, package_tree, ranks=1)
    return out
