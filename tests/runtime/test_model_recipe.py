"""The recipe "A model (real weights)" of ARCHITECTURE.md, executed with a family not shipped."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch
from conftest import load_pair
from offload_setup import PREFERENCES, ForcedPolicy, tiny_engine
from test_families import used_experts
from test_offloaded_logits import PROMPT, WINDOWS, plain_logits, verify_logits

from policies.errors import UserError
from runtime.checkpoints import open_target
from runtime.families import FAMILIES
from runtime.family import Family
from runtime.routing_capture import RoutingCapture
from runtime.tiny_families import EXPERTS, WIDTH, make_tiny_family

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"
SIZES = {
    "num_experts": EXPERTS, "moe_intermediate_size": WIDTH, "intermediate_size": 40,
    "shared_expert_intermediate_size": 20, "decoder_sparse_step": 2, "num_hidden_layers": 4,
}  # fmt: skip


def written_recipe() -> str:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    section = text[text.index("**A model** (real weights)") :]
    found = re.search(r"```python\n(.*?)```", section[: section.index("**A machine**")], re.S)
    assert found is not None
    return found.group(1)


@pytest.fixture
def family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Family:
    """Registered for this test alone."""
    file = tmp_path / "qwen2_moe_family.py"
    file.write_text(written_recipe())
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (found,) = [one for one in vars(module).values() if isinstance(one, Family)]
    monkeypatch.setitem(FAMILIES, found.model_type, found)
    return found


def test_it_is_ten_lines() -> None:
    lines = [line for line in written_recipe().splitlines() if line.strip()]
    assert len(lines) <= 10
    assert "qwen2_moe" not in FAMILIES, "the recipe shows a family that is not shipped"


def test_the_family_runs_under_every_placement(family: Family, tmp_path: Path) -> None:
    make_tiny_family(tmp_path, family.model_type, seed=7, **SIZES)
    pair = load_pair(tmp_path)
    assert pair.target.facts.moe_layers == (1, 3)
    expected = plain_logits(pair.target, WINDOWS, PROMPT)
    for preference in PREFERENCES:
        with tiny_engine(tmp_path, ForcedPolicy(preference), slots=5) as engine:
            ours = verify_logits(engine, WINDOWS, PROMPT)
        for a, b in zip(ours, expected, strict=True):
            torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-5)
    experts, _ = used_experts(pair, PROMPT)
    with RoutingCapture(pair.target.routers) as capture:
        pair.target.prefill(PROMPT)
        assert (capture.take().experts == experts).all()


def test_without_its_record_it_is_refused(
    family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, _ = make_tiny_family(tmp_path, family.model_type, **SIZES)
    monkeypatch.delitem(FAMILIES, family.model_type)
    with pytest.raises(UserError, match=r"model_type qwen2_moe .* known are qwen3_moe .* gpt_oss"):
        open_target(target)
