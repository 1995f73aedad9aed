"""Logits and texts of the offloaded target equal the plain one's under every placement."""

from pathlib import Path

import pytest
import torch
from conftest import LoadedPair
from offload_setup import PREFERENCES, ForcedPolicy, fast_standin, tiny_engine

from policies.api import CPU, FETCH, GPU, STREAM
from runtime.engine import OffloadedEngine
from runtime.engine_settings import slots_of_ratio
from runtime.hazards import HazardChecker
from runtime.lossless import plain_text, prove_lossless
from runtime.prompts import Prompt
from runtime.standin import standin
from runtime.stopping import StopRule
from runtime.target_model import TargetModel

LAYERS, EXPERTS = 3, 8  # MoE layers of the tiny pair; a fourth layer is dense
TOKENS = 16


def verify_logits(engine: OffloadedEngine, windows: list[list[int]], prompt: list[int]) -> list:
    """Logits of verify windows under the engine's policy, after the prompt."""
    listener = engine.listener
    listener.start_request(0, prompt)
    engine.target.prefill(prompt)
    listener.after_prefill(prompt, windows[0][0], 0.0)
    logits = []
    for window in windows:
        listener.start_pass(window[0], len(window) - 1)
        listener.before_verify(window)
        logits.append(engine.target.forward(window))
        listener.end_pass(0, window[:1])
    return logits


def plain_logits(target: TargetModel, windows: list[list[int]], prompt: list[int]) -> list:
    target.prefill(prompt)
    return [target.forward(window) for window in windows]


WINDOWS = [[7, 12, 31, 9], [3, 3, 40, 22], [63], [14, 15, 16, 17], [8, 8, 8, 8]]
PROMPT = [10, 20, 30, 40, 50]


@pytest.mark.parametrize("cache_ratio", [0.05, 0.25, 0.6, 1.0])
@pytest.mark.parametrize("preference", PREFERENCES)
def test_logits_equal_plain_transformers(
    preference: str, cache_ratio: float, tiny: LoadedPair
) -> None:
    checker = HazardChecker()
    slots = slots_of_ratio(cache_ratio, LAYERS, EXPERTS)
    with tiny_engine(
        tiny.path, ForcedPolicy(preference), standin(1e9, 0, checker), slots=slots
    ) as engine:
        ours = verify_logits(engine, WINDOWS, PROMPT)
    for a, b in zip(ours, plain_logits(tiny.target, WINDOWS, PROMPT), strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-5)
    assert checker.hazards == []
    assert checker.checked > 100 or preference == "CPU"


def test_placement_changes_no_bit(tiny: LoadedPair) -> None:
    results = []
    for preference in PREFERENCES:
        with tiny_engine(tiny.path, ForcedPolicy(preference), standin(1e9, 0), slots=5) as engine:
            results.append(verify_logits(engine, WINDOWS, PROMPT))
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_the_forced_placements_really_occur(tiny: LoadedPair) -> None:
    seen = set()
    for preference in PREFERENCES:
        with tiny_engine(tiny.path, ForcedPolicy(preference), standin(1e9, 0), slots=5) as engine:
            verify_logits(engine, WINDOWS, PROMPT)
        placed = {int(kind) for row in engine.runlog().layers["placement"] for kind in row}
        wanted = {"GPU": GPU, "CPU": CPU, "FETCH": FETCH, "STREAM": STREAM}.get(preference)
        assert wanted is None or wanted in placed
        seen |= placed
    assert seen == {GPU, CPU, FETCH, STREAM}


def test_the_experts_are_in_memory_once(tiny: LoadedPair) -> None:
    with tiny_engine(tiny.path, ForcedPolicy("CPU")) as engine:
        empty = [
            name
            for name, parameter in engine.target.module.named_parameters()
            if parameter.device.type == "meta"
        ]
    assert len(empty) == 2 * LAYERS
    assert all(".experts." in name for name in empty)


@pytest.mark.parametrize(
    ("preference", "mode", "gamma"),
    [*((one, "live", 3) for one in PREFERENCES), ("MIXED", "logical", 3), ("MIXED", "live", 0)],
)
def test_texts_equal_plain_decoding(
    preference: str, mode: str, gamma: int, tiny: LoadedPair, tiny_prompts: list[Prompt]
) -> None:
    checker = HazardChecker()
    device = fast_standin(checker, rate=20e6)
    prompts = [prompt.tokens for prompt in tiny_prompts]
    with tiny_engine(
        tiny.path, ForcedPolicy(preference), device, slots=5, mode=mode, gamma=gamma
    ) as engine:
        texts = [
            [token for block in engine.generate(prompt, TOKENS) for token in block]
            for prompt in prompts
        ]
    proof = prove_lossless(tiny.target, prompts, texts, engine.settings, TOKENS)
    assert proof.identical, proof
    assert proof.tokens > len(prompts)
    assert checker.hazards == []


def test_the_proof_notices_one_wrong_token(tiny: LoadedPair, tiny_prompts: list[Prompt]) -> None:
    with tiny_engine(tiny.path, ForcedPolicy("CPU")) as engine:
        settings = engine.settings
    prompts = [prompt.tokens for prompt in tiny_prompts[:2]]
    texts = [
        plain_text(tiny.target, n, prompt, settings, StopRule(8, tiny.target.facts.end_tokens))
        for n, prompt in enumerate(prompts)
    ]
    assert prove_lossless(tiny.target, prompts, texts, settings, 8).identical
    texts[1][3] += 1
    assert prove_lossless(tiny.target, prompts, texts, settings, 8).first_difference == (1, 3)
    assert prove_lossless(tiny.target, prompts, [texts[0], []], settings, 8).first_difference == (
        1,
        0,
    )


def test_streaming_in_prefill_changes_no_text(tiny: LoadedPair, tmp_path: Path) -> None:
    """With a dear CPU every expert of the prompt is streamed through one staging buffer."""
    texts = []
    for staging in (0, 1):
        with tiny_engine(tiny.path, ForcedPolicy("CPU"), staging=staging, cpu_ns=10**9) as engine:
            texts.append([t for block in engine.generate(PROMPT, 6) for t in block])
        copies = engine.runlog().copies
        assert (len(copies) > 0) == (staging > 0)
        assert set(copies["pass_index"]) <= {0}
        assert (engine.session.ledger.expert_slot == -1).all()
    assert texts[0] == texts[1]
