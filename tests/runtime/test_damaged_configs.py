"""Checkpoints whose config.json or tokenizer.json nobody's training wrote: refused in one line."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from policies.errors import UserError
from runtime.checkpoints import open_draft, open_target
from runtime.run_memory import check_resident
from runtime.tiny import TinyShape, make_tiny_pair
from runtime.tokenizers import Tokenizer

SIZES = ["num_hidden_layers", "hidden_size", "num_attention_heads", "max_position_embeddings"]
HOSTILE = [0, -1, 10**30, float("inf"), float("nan"), "x", [], True]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pair")
    make_tiny_pair(path, seed=3, shape=TinyShape(layers=3))
    return path


def changed(source: Path, copy: Path, **values: Any) -> Path:
    shutil.copytree(source, copy)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | values))
    return copy


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("key", SIZES)
def test_sizes_that_no_model_has(pair: Path, tmp_path: Path, key: str, value: Any) -> None:
    for role, opened in (("target", open_target), ("draft", open_draft)):
        path = changed(pair / role, tmp_path / role, **{key: value})
        with pytest.raises(UserError, match=key):
            opened(path)


@pytest.mark.parametrize("key", ["num_experts", "decoder_sparse_step", "num_experts_per_tok"])
@pytest.mark.parametrize("value", [-1, 10**12, float("inf")])
def test_experts_that_no_model_has(pair: Path, tmp_path: Path, key: str, value: Any) -> None:
    path = changed(pair / "target", tmp_path / "copy", **{key: value})
    with pytest.raises(UserError, match=key):
        open_target(path)


@pytest.mark.parametrize("value", [-1, float("nan"), "x", [3], {}])
def test_architectures_that_are_no_list(pair: Path, tmp_path: Path, value: Any) -> None:
    path = changed(pair / "draft", tmp_path / "copy", architectures=value)
    with pytest.raises(UserError, match="is not supported"):
        open_draft(path)


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, "[]", "", '{"model": 3}', "{}"])
def test_tokenizers_that_are_none(pair: Path, tmp_path: Path, text: str) -> None:
    path = shutil.copytree(pair / "target", tmp_path / "copy")
    (path / "tokenizer.json").write_text(text)
    with pytest.raises(UserError, match=r"tokenizer\.json"):
        Tokenizer(path)


def test_a_word_without_a_token(pair: Path, tmp_path: Path) -> None:
    path = shutil.copytree(pair / "target", tmp_path / "copy")
    content = json.loads((path / "tokenizer.json").read_text())
    content["model"]["vocab"] = {"w7": 0}
    content["added_tokens"] = []
    (path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match="tokenizer"):
        Tokenizer(path).encode("w8")


def test_whole_models_must_fit(pair: Path) -> None:
    models = {"target": open_target(pair / "target"), "draft": open_draft(pair / "draft")}
    size = sum(
        file.stat().st_size for role in models for file in (pair / role).glob("*.safetensors")
    )
    check_resident(models, "float32", size)  # headers of the files make them a little larger
    with pytest.raises(UserError, match="do not fit"):
        check_resident(models, "float32", size // 2)
    check_resident(models, "bfloat16", size // 2 + 2**12)
