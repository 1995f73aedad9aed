"""A complete tiny run, resuming after an interruption, and the two-rank average."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from experiments.train_pair import run
from policies.errors import UserError
from runtime.training.pipeline import train_pair
from runtime.training.prompts import occurs, read_prompts
from runtime.training.ranks import GradientAverage, run_ranks
from runtime.training.recipe import WORKLOADS, Recipe, Schedule, scaled
from runtime.training.stages import RecipeMismatch
from runtime.training.token_store import read_splits
from tests.runtime.training.tiny_texts import TINY_RECIPE

WEIGHTS = ("target/model.safetensors", "draft/model.safetensors")


class Killed(Exception):
    """Stands for a kill signal."""


def test_run_writes_everything(finished_run: Path):
    pair = finished_run / "pair"
    measured = json.loads((pair / "evaluation.json").read_text())
    assert set(measured["workloads"]) == set(WORKLOADS)
    assert 0 <= measured["mean"]["keyed"]["acceptance"] <= 1
    card = (pair / "MODEL_CARD.md").read_text()
    assert f"{measured['mean']['routing']['reuse']:.3f}" in card
    assert measured["text_digest"] in card
    assert "a pair of a changed recipe" in card
    assert f"{measured['ablation']['without']['routing']['reuse']:.3f}" in card
    assert "Permission to use is granted" in (pair / "NOTICE").read_text()


def test_prompts_are_held_out(finished_run: Path):
    splits = read_splits(finished_run / "work" / "tokens")
    for workload in WORKLOADS:
        prompts = read_prompts(finished_run / "prompts", workload)
        assert len({tuple(prompt.tokens) for prompt in prompts}) == 3
        for prompt in prompts:
            window = torch.tensor(prompt.tokens).numpy().astype("uint16")
            assert occurs(window, splits.validation[workload])
            assert not any(occurs(window, text) for text in splits.training.values())


@pytest.mark.parametrize("stage", ["target", "draft"])
def test_resumed_run_gives_the_same_weights(
    stage: str,
    finished_run: Path,
    package_tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    def kill(message: str) -> None:
        if message.startswith(f"{stage} 3/"):
            raise Killed

    monkeypatch.setattr("runtime.training.train_target.REPORT_STEPS", 1)
    monkeypatch.setattr("runtime.training.distil_draft.REPORT_STEPS", 1)
    with pytest.raises(Killed):
        train_pair(TINY_RECIPE, tmp_path, package_tree, 1, kill)
    assert not (tmp_path / "pair").exists()
    train_pair(TINY_RECIPE, tmp_path, package_tree, 1)
    for name in WEIGHTS:
        ours, theirs = (load_file(run / "pair" / name) for run in (tmp_path, finished_run))
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


def test_another_recipe_is_refused(finished_run: Path, package_tree: Path):
    other = replace(TINY_RECIPE, target=replace(TINY_RECIPE.target, seed=99))
    with pytest.raises(RecipeMismatch, match="another target recipe"):
        train_pair(other, finished_run, package_tree, 1)


def test_missing_text_is_a_refusal(tmp_path: Path):
    from omegaconf import OmegaConf

    config = OmegaConf.create(
        {"out": str(tmp_path / "out"), "corpus_dir": str(tmp_path / "no"), "ranks": 1, "scale": 0.1}
    )
    with pytest.raises(UserError, match="corpus_dir"):
        run(config)


def average_gradients(rank: int, ranks: int, folder: Path) -> None:
    layer = torch.nn.Linear(2, 2)
    for parameter in layer.parameters():
        parameter.grad = torch.full_like(parameter, rank + 1.0)
    means = GradientAverage(layer, 1, ranks)(torch.tensor([10.0 * rank]))
    (folder / str(rank)).write_text(f"{means.item()} {layer.weight.grad.unique().item()}")


def test_two_ranks_average(tmp_path: Path):
    run_ranks(average_gradients, 2, tmp_path)
    assert [(tmp_path / rank).read_text() for rank in "01"] == ["5.0 1.5", "5.0 1.5"]


def test_schedule_and_scale():
    schedule = Schedule(100, 2.0, 10, 0.5)
    assert [schedule.rate(step) for step in (0, 9, 49, 75, 99)] == pytest.approx(
        [0.2, 2.0, 2.0, 1.0, 0.04]
    )
    small = scaled(Recipe(), 0.01)
    assert small.target.schedule.steps == round(Recipe().target.schedule.steps * 0.01)
    assert scaled(Recipe(), 1.0) == Recipe()
    with pytest.raises(ValueError, match="scale"):
        scaled(Recipe(), 0)
