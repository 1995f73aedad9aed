"""The files in runtime/pretrained: sizes, shapes and prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

import runtime
from runtime.training.evaluate import parameters
from runtime.training.export import load_exported
from runtime.training.model_card import render_card
from runtime.training.prompts import read_prompts
from runtime.training.recipe import WORKLOADS, Recipe

PRETRAINED = Path(runtime.__file__).parent / "pretrained"
PAIR = PRETRAINED / "pair"


def test_sizes_and_shapes():
    target, draft = load_exported(PAIR / "target"), load_exported(PAIR / "draft")
    assert target.shape == Recipe().target_shape
    assert draft.shape == Recipe().draft.shape
    assert parameters(target) <= 8_000_000
    weights = [PAIR / name / "model.safetensors" for name in ("target", "draft")]
    assert sum(path.stat().st_size for path in weights) <= 20_000_000


def test_both_share_one_tokenizer():
    files = [(PAIR / name / "tokenizer.json").read_bytes() for name in ("target", "draft")]
    assert files[0] == files[1]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_prompts_match_the_tokenizer(workload: str):
    tokenizer = Tokenizer.from_file(str(PAIR / "target" / "tokenizer.json"))
    prompts = read_prompts(PRETRAINED / "prompts", workload)
    assert len(prompts) >= 24
    assert len({tuple(prompt.tokens) for prompt in prompts}) == len(prompts)
    for prompt in prompts:
        assert 48 <= len(prompt.tokens) <= 64
        assert tokenizer.encode(prompt.text).ids == prompt.tokens
        assert prompt.id.startswith(workload)


def test_card_shows_the_measured_numbers():
    measured = json.loads((PAIR / "evaluation.json").read_text(encoding="utf-8"))
    card = (PAIR / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert card == render_card(Recipe(), measured)
    assert "WordNet" in (PAIR / "NOTICE").read_text(encoding="utf-8")
