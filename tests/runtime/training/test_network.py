"""The training network against transformers, autograd and its own cache."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as functional

from runtime.training.export import load_exported
from runtime.training.key_value_cache import KeyValueCache
from runtime.training.moe_autograd import GroupedLoop
from runtime.training.network import Network, initialise
from tests.runtime.training.tiny_texts import TINY_TARGET

VOCABULARY = TINY_TARGET.vocabulary


@pytest.mark.parametrize("name", ["target", "draft"])
def test_logits_equal_transformers(finished_run: Path, name: str):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = finished_run / "pair" / name
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ours = load_exported(folder)
    tokens = torch.randint(0, VOCABULARY, (2, 40), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        difference = (theirs(tokens).logits - ours(tokens)).abs().max()
    assert difference <= 1e-4
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.eos_token_id == 0
    assert tokenizer.decode(tokenizer("def sheep(7):\n").input_ids) == "def sheep(7):\n"


def test_grouped_loop_equals_autograd():
    generator = torch.Generator().manual_seed(1)
    sizes = [3, 0, 5, 1]
    rows, gate_up, down = (
        torch.randn(*size, generator=generator, dtype=torch.float64, requires_grad=True)
        for size in ((9, 6), (4, 8, 6), (4, 6, 4))
    )
    ends = torch.tensor(sizes).cumsum(0).tolist()
    wanted = []
    for expert, part in enumerate(rows.split(sizes)):
        gate, up = (part @ gate_up[expert].T).chunk(2, -1)
        wanted.append((functional.silu(gate) * up) @ down[expert].T)
    wanted = torch.cat(wanted)
    given = GroupedLoop.apply(rows, gate_up, down, ends)
    torch.testing.assert_close(given, wanted)
    weight = torch.randn(wanted.shape, generator=generator, dtype=torch.float64)
    inputs = (rows, gate_up, down)
    for ours, theirs in zip(
        torch.autograd.grad((given * weight).sum(), inputs),
        torch.autograd.grad((wanted * weight).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_cached_passes_equal_one_pass():
    network = Network(TINY_TARGET).requires_grad_(False)
    initialise(network, 2)
    tokens = torch.randint(0, VOCABULARY, (1, 24), generator=torch.Generator().manual_seed(3))
    cache = KeyValueCache(TINY_TARGET, 1, 64)
    parts = [network(tokens[:, :10], cache), network(tokens[:, 10:11], cache)]
    network(torch.zeros(1, 5, dtype=torch.long), cache)
    cache.length = 11
    parts.append(network(tokens[:, 11:], cache))
    torch.testing.assert_close(torch.cat(parts, 1), network(tokens), atol=1e-5, rtol=1e-5)
