"""The demo explains real runs that come out in another order than the simulated comparison."""

import json
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from experiments.demo_order import other_order
from experiments.provenance import write_run_file
from experiments.winner import write_winner
from tests.experiments.test_winner import WINNER


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_winner(tmp_path, WINNER)
    for name in ("run", "run_with_draft"):
        (tmp_path / name).mkdir()
        config = OmegaConf.create({"hardware": {"name": "standin"}})
        write_run_file(tmp_path / name, "run", config, {})
    return tmp_path


def measured(folder: Path, speed: float, tokens: int) -> None:
    figures = {"tokens_per_second": speed, "committed_tokens": tokens}
    (folder / "metrics.json").write_text(json.dumps(figures))


def told(folder: Path) -> str | None:
    return other_order(folder, folder / "run", folder / "run_with_draft")


def test_the_other_order_is_explained_with_its_numbers(folder: Path) -> None:
    measured(folder / "run", 20.0, 14)
    measured(folder / "run_with_draft", 31.5, 15)
    line = told(folder)
    assert line is not None and "\n" not in line
    assert "31.5 against 20.0 tokens per second" in line
    assert "costs of rtx4090, these runs those of standin" in line
    assert "only 15 and 14 tokens" in line


@pytest.mark.parametrize("speed", [20.0, 19.0])
def test_the_same_order_needs_no_word(folder: Path, speed: float) -> None:
    measured(folder / "run", 20.0, 14)
    measured(folder / "run_with_draft", speed, 15)
    assert told(folder) is None


def test_a_run_that_measured_nothing(folder: Path) -> None:
    measured(folder / "run", 20.0, 14)
    assert told(folder) is None
