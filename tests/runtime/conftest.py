"""Fixtures of the runtime tests: a tiny random pair, and the trained pair where there is one."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from recorded_cuda import cuda_record, mapped  # noqa: F401 (fixtures)

from runtime.checkpoints import SHIPPED_PAIR
from runtime.draft_model import DraftModel, open_draft_model
from runtime.prompts import Prompt
from runtime.target_model import TargetModel, open_target_model
from runtime.tiny import TinyShape, make_tiny_pair

# Two threads on busy cores wait for each other in a spin barrier and run 30 times slower.
torch.set_num_threads(1)


@dataclass(frozen=True)
class LoadedPair:
    target: TargetModel
    draft: DraftModel
    path: Path


def load_pair(path: Path) -> LoadedPair:
    target = open_target_model(path / "target")
    draft = open_draft_model(path / "draft", target.facts)
    assert draft is not None
    return LoadedPair(target, draft, path)


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny pair with one dense layer in the middle and token 5 as end token."""
    path = tmp_path_factory.mktemp("tiny")
    make_tiny_pair(
        path, seed=3, shape=TinyShape(dense_layers=(1,), layers=4, end_token=5, strength=0.4)
    )
    return path


@pytest.fixture(scope="session")
def tiny(tiny_path: Path) -> LoadedPair:
    return load_pair(tiny_path)


@pytest.fixture(scope="session")
def trained() -> LoadedPair:
    """The shipped pair, else a trial pair beside the data folder."""
    candidates = [SHIPPED_PAIR]
    if "SPAC_DATA" in os.environ:
        candidates.append(Path(os.environ["SPAC_DATA"]).parent / "trial-pair")
    for path in candidates:
        if (path / "draft" / "config.json").is_file():
            return load_pair(path)
    pytest.skip(f"no trained pair at {' or '.join(map(str, candidates))}")


@pytest.fixture(scope="session")
def tiny_prompts() -> list[Prompt]:
    """Prompts of different lengths, none with the end token."""
    return [
        Prompt(
            f"prompt {number}", tuple((7 * number + 11 * place) % 58 + 6 for place in range(length))
        )
        for number, length in enumerate((1, 4, 9, 17))
    ]
