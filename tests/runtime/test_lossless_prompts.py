"""Equal tokens in float32: the offloaded engine with drafts against plain decoding."""

from pathlib import Path
from typing import Any

import pytest
from conftest import LoadedPair
from offload_setup import fast_standin, flat_costs

from policies.zoo.spac import spac
from runtime.engine import OffloadedEngine
from runtime.engine_settings import EngineSettings, slots_of_ratio
from runtime.lossless import prove_lossless
from runtime.prompts import read_prompts, shipped_prompts, shipped_workloads
from runtime.truncation import ALL_TOKENS, Truncation
from traces.manifest import SamplingInfo

GREEDY = SamplingInfo("greedy", 1.0, 0)
KEYED = SamplingInfo("keyed", 0.8, 5)
LEAST = 1.005  # tokens a pass: some drafts were accepted, also by lookup in random text
NUCLEUS = Truncation(top_k=40, top_p=0.95)

WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"sampling": GREEDY},
    "keyed": {"sampling": KEYED},
    "keyed, truncated": {"sampling": KEYED, "truncation": NUCLEUS},
    "greedy, lookup": {"sampling": GREEDY, "draft": "ngram"},
    "keyed, lookup": {"sampling": KEYED, "draft": "ngram"},
}


def compare(pair: LoadedPair, prompts: list[list[int]], way: str, tokens: int) -> float:
    """Assert equal texts; the committed tokens per pass, which tell that drafts were accepted."""
    given = dict(WAYS[way])
    draft: Path | str = given.pop("draft", pair.path / "draft")
    facts = pair.target.facts
    settings = EngineSettings(
        slots=slots_of_ratio(0.25, len(facts.moe_layers), facts.experts),
        sampling=given["sampling"],
        truncation=given.get("truncation", ALL_TOKENS),
    )
    with OffloadedEngine(
        pair.path / "target", draft, fast_standin(), spac(), flat_costs(), settings
    ) as engine:
        texts = [[t for block in engine.generate(one, tokens) for t in block] for one in prompts]
    proof = prove_lossless(pair.target, prompts, texts, settings, tokens)
    assert proof.identical, proof.first_difference
    assert proof.prompts == len(prompts)
    passes = engine.runlog().passes
    decode = passes[passes["phase"] == 1]
    return float(decode["committed"].sum() / len(decode))


def random_prompts(count: int) -> list[list[int]]:
    return [[(13 * n + 7 * place) % 58 + 6 for place in range(1 + n % 12)] for n in range(count)]


def prompts_of_all_workloads(count: int) -> list[list[int]]:
    """The shipped prompts, a workload after the other; beyond those, their second halves."""
    whole = [
        list(prompt.tokens)
        for workload in shipped_workloads()
        for prompt in read_prompts(shipped_prompts(workload), lambda text: [])
    ]
    mixed = whole[:: max(1, len(whole) // count)] if count <= len(whole) else whole
    halves = [tokens[len(tokens) // 2 :] for tokens in whole]
    return [*mixed, *halves][:count]


@pytest.mark.parametrize("way", WAYS)
def test_twenty_prompts_on_the_tiny_pair(tiny: LoadedPair, way: str) -> None:
    assert compare(tiny, random_prompts(20), way, tokens=16) > LEAST


@pytest.mark.parametrize("way", ["greedy", "keyed"])
def test_a_few_prompts_on_the_trained_pair(trained: LoadedPair, way: str) -> None:
    assert compare(trained, prompts_of_all_workloads(5), way, tokens=10) > LEAST


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_two_hundred_prompts_on_the_tiny_pair(tiny: LoadedPair, way: str) -> None:
    assert compare(tiny, random_prompts(200), way, tokens=32) > LEAST


@pytest.mark.slow
@pytest.mark.parametrize("way", ["greedy", "keyed", "keyed, truncated", "keyed, lookup"])
def test_two_hundred_prompts_on_the_trained_pair(trained: LoadedPair, way: str) -> None:
    assert compare(trained, prompts_of_all_workloads(200), way, tokens=24) > LEAST
