"""Dense drafts of every supported architecture, written as transformers writes them."""

import shutil
from pathlib import Path

import pytest
import torch
from conftest import LoadedPair
from offload_setup import ForcedPolicy, tiny_engine

from policies.errors import UserError
from runtime.checkpoints import DRAFT_ARCHITECTURES, open_draft
from runtime.draft_model import open_draft_model
from runtime.run_memory import weight_bytes
from runtime.tiny_families import HIDDEN, VOCABULARY, fill_randomly

SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": 40,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "max_position_embeddings": 512, "bos_token_id": None, "eos_token_id": None,
    "pad_token_id": None,
}  # fmt: skip
TEXT = list(range(6, 30))


@pytest.fixture(params=DRAFT_ARCHITECTURES)
def draft(request: pytest.FixtureRequest, tiny_path: Path, tmp_path: Path) -> Path:
    import transformers

    model = getattr(transformers, request.param)
    window = {"sliding_window": 5} if request.param == "MistralForCausalLM" else {}
    module = model(model.config_class(**SIZES, **window)).float()
    fill_randomly(module, torch.Generator().manual_seed(2))
    module.save_pretrained(str(tmp_path / "draft"))
    shutil.copy(tiny_path / "target" / "tokenizer.json", tmp_path / "draft" / "tokenizer.json")
    return tmp_path / "draft"


def test_a_cut_cache_equals_a_fresh_one(draft: Path, tiny: LoadedPair) -> None:
    model = open_draft_model(draft, tiny.target.facts)
    assert model is not None
    expected = model.prefill(TEXT, keep=1)
    model.prefill(TEXT[:12])
    model.forward([50, 51, 52, 53])
    model.cut(12)
    resumed = model.forward(TEXT[12:], keep=1)
    torch.testing.assert_close(resumed, expected, atol=1e-5, rtol=1e-5)


def test_planned_bytes_are_those_of_the_module_and_its_cache(draft: Path, tiny: LoadedPair) -> None:
    facts, model = open_draft(draft), open_draft_model(draft, tiny.target.facts)
    assert model is not None
    held = {id(one): one for one in model.module.parameters()}.values()
    assert weight_bytes(facts, torch.float32) == sum(one.numel() * 4 for one in held)
    model.prefill(TEXT)
    kept = [part for layer in model._cache.layers for part in (layer.keys, layer.values)]
    assert sum(part.numel() for part in kept) == facts.kv_elements * len(TEXT)


def test_any_of_them_drafts_for_any_target(draft: Path, tiny: LoadedPair) -> None:
    texts = []
    for drafting in (True, False):
        shutil.rmtree(draft.parent / "target", ignore_errors=True)
        shutil.copytree(tiny.path / "target", draft.parent / "target")
        policy, gamma = ForcedPolicy("MIXED"), 3 if drafting else 0
        with tiny_engine(draft.parent, policy, slots=5, gamma=gamma) as engine:
            texts.append([token for block in engine.generate([9, 10, 11], 12) for token in block])
    assert texts[0] == texts[1]


def test_a_moe_model_is_no_draft(tiny: LoadedPair) -> None:
    with pytest.raises(UserError, match=r"Qwen3MoeForCausalLM is not supported as a draft; known"):
        open_draft(tiny.path / "target")
