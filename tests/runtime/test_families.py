"""Every family of models: facts, logits under every placement, routing as recorded, texts."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import LoadedPair, load_pair
from offload_setup import PREFERENCES, ForcedPolicy, fast_standin, tiny_engine
from test_offloaded_logits import PROMPT, TOKENS, WINDOWS, plain_logits, verify_logits

from policies.errors import UserError
from runtime.checkpoints import open_target
from runtime.engine_settings import slots_of_ratio
from runtime.expert_layout import layout_of
from runtime.families import FAMILIES
from runtime.hazards import HazardChecker
from runtime.lossless import prove_lossless
from runtime.next_layers import NextLayers
from runtime.prompts import Prompt
from runtime.routing_capture import RoutingCapture
from runtime.run_memory import weight_bytes
from runtime.target_shell import load_shell
from runtime.tiny_families import EXPERTS, HIDDEN, TOP_K, WIDTH, make_tiny_family
from traces.rows import FILLER

MOE_LAYERS = {
    "qwen3_moe": (0, 2), "mixtral": (0, 1, 2), "olmoe": (0, 1, 2), "deepseek_v2": (1, 2),
    "gpt_oss": (0, 1, 2),
}  # fmt: skip
WORDS = list(range(6, 40))  # longer than the sliding window of the tiny gpt-oss


@pytest.fixture(scope="module", params=FAMILIES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoadedPair:
    path = tmp_path_factory.mktemp(request.param)
    make_tiny_family(path, request.param, seed=4, shards=2)
    return load_pair(path)


def test_facts(pair: LoadedPair) -> None:
    facts = pair.target.facts
    model_type = facts.target_family.model_type
    assert facts.moe_layers == MOE_LAYERS[model_type]
    assert (facts.experts, facts.top_k, facts.expert_width) == (EXPERTS, TOP_K, WIDTH)
    biases = 2 * WIDTH + HIDDEN if model_type == "gpt_oss" else 0
    assert layout_of(facts, torch.float32).expert_bytes == 4 * (3 * WIDTH * HIDDEN + biases)


def test_planned_bytes_are_those_of_the_module_and_its_cache(pair: LoadedPair) -> None:
    facts, place = pair.target.facts, torch.device("cpu")
    for dtype in (torch.float32, torch.bfloat16):
        shell = load_shell(facts, place, dtype)
        held = [weight for weight in shell.module.parameters() if not weight.is_meta]
        assert weight_bytes(facts, dtype) == sum(one.numel() * one.itemsize for one in held)
    shell = pair.target
    shell.prefill(WORDS)
    kept = [part for layer in shell._cache.layers for part in (layer.keys, layer.values)]
    assert sum(part.numel() for part in kept) == facts.kv_elements * len(WORDS)


@pytest.mark.parametrize("cache_ratio", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("preference", PREFERENCES)
def test_logits_equal_plain_transformers(
    preference: str, cache_ratio: float, pair: LoadedPair
) -> None:
    checker = HazardChecker()
    slots = slots_of_ratio(cache_ratio, len(pair.target.facts.moe_layers), EXPERTS)
    device = fast_standin(checker)
    with tiny_engine(pair.path, ForcedPolicy(preference), device, slots=slots) as engine:
        ours = verify_logits(engine, WINDOWS, PROMPT)
    for a, b in zip(ours, plain_logits(pair.target, WINDOWS, PROMPT), strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-5)
    assert checker.hazards == []


def test_texts_equal_plain_decoding(pair: LoadedPair, tiny_prompts: list[Prompt]) -> None:
    prompts = [prompt.tokens for prompt in tiny_prompts]
    with tiny_engine(pair.path, ForcedPolicy("MIXED"), slots=5) as engine:
        texts = [
            [token for block in engine.generate(prompt, TOKENS) for token in block]
            for prompt in prompts
        ]
    proof = prove_lossless(pair.target, prompts, texts, engine.settings, TOKENS)
    assert proof.identical, proof
    accepted = engine.runlog().passes["accepted"]
    assert accepted.max() > 0, "the draft is never right, so no window was accepted"


def test_a_cut_cache_equals_a_fresh_one(pair: LoadedPair) -> None:
    """Also behind a sliding window: rejected drafts leave no trace."""
    target = pair.target
    expected = target.prefill(WORDS, keep=0)
    target.prefill(WORDS[:20])
    for wrong in ([50, 51, 52, 53], [60] * 9):
        target.forward(wrong)
        target.cut(20)
    resumed = target.forward(WORDS[20:])
    torch.testing.assert_close(resumed, expected[20:], atol=2e-5, rtol=1e-5)


def used_experts(pair: LoadedPair, tokens: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Reference: experts and weights [rows, L, k] with which the model calls its experts modules,
    best first.
    """
    calls: list[tuple[torch.Tensor, torch.Tensor]] = []
    hooks = [
        experts.register_forward_pre_hook(lambda _, inputs: calls.append(inputs[1:3]))
        for experts in pair.target.experts
    ]
    pair.target.prefill(tokens)
    for hook in hooks:
        hook.remove()
    experts = torch.stack([one[0] for one in calls], 1)
    weights, order = torch.stack([one[1] for one in calls], 1).sort(-1, descending=True)
    return experts.gather(-1, order).numpy(), weights.numpy()


def test_recorded_routing_is_what_the_model_used(pair: LoadedPair) -> None:
    experts, weights = used_experts(pair, WORDS)
    with RoutingCapture(pair.target.routers, rule=pair.target.facts.routing) as capture:
        pair.target.prefill(WORDS)
        routing = capture.take()
    assert np.array_equal(routing.experts, experts)
    assert np.array_equal(routing.weights, weights.astype(np.float16))
    assert (np.diff(routing.weights.astype(np.float32)) <= 0).all()


def test_predictions_are_what_the_later_routers_choose(pair: LoadedPair) -> None:
    target, inputs = pair.target, []
    hooks = [
        router.register_forward_hook(lambda _, given, __: inputs.append(given[0]))
        for router in target.routers
    ]
    rule, layers = target.facts.routing, len(target.routers)
    with RoutingCapture(target.routers, lookahead=2, rule=rule) as capture:
        target.prefill(WORDS)
        predicted = capture.take().next_layer
    for hook in hooks:
        hook.remove()
    assert predicted is not None
    engine = NextLayers(target.routers, 2, TOP_K, rule)
    for layer, hidden in enumerate(inputs):
        flat = hidden.reshape(-1, HIDDEN)
        same = engine.predict(layer, flat)
        assert same is not None
        assert np.array_equal(same.numpy(), predicted[:, :, layer])
        for distance in (1, 2):
            found = predicted[distance - 1, :, layer]
            if layer + distance >= layers:
                assert (found == FILLER).all()
                continue
            _, _, chosen = target.routers[layer + distance](flat)
            assert np.array_equal(np.sort(found), np.sort(chosen.numpy()))


def test_margins_tell_how_far_the_choice_is_from_another(pair: LoadedPair) -> None:
    """Moving each logit by less than half the margin changes nothing, moving one by more than all
    of it something; with groups the margin may be smaller than needed, never larger.
    """
    rule = pair.target.facts.routing
    logits = torch.randn(200, EXPERTS, generator=torch.Generator().manual_seed(1))
    margins = rule.margins(logits, TOP_K)
    chosen = rule.choose(logits, TOP_K).sort(-1).values
    assert (margins > 0).all()
    push = torch.sign(torch.randn(logits.shape, generator=torch.Generator().manual_seed(2)))
    moved = rule.choose(logits + 0.499 * margins[:, None] * push, TOP_K).sort(-1).values
    assert torch.equal(moved, chosen)
    raised = [logits + 1.01 * margins[:, None] * torch.eye(EXPERTS)[one] for one in range(EXPERTS)]
    differs = torch.stack([
        (rule.choose(one, TOP_K).sort(-1).values != chosen).any(-1) for one in raised
    ])  # fmt: skip
    share = float(differs.any(0).float().mean())
    assert share == 1.0 if rule.groups == 1 else 0.5 < share < 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"topk_method": "noaux_tc"}, "topk_method=noaux_tc is unknown"),
        ({"moe_layer_freq": 2}, "moe_layer_freq=2"),
    ],
)
def test_routing_that_is_not_computed_is_refused(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    target, _ = make_tiny_family(tmp_path, "deepseek_v2")
    file = target / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(UserError, match=message):
        open_target(target)


def test_mxfp4_is_refused_with_the_remedy(tmp_path: Path) -> None:
    target, _ = make_tiny_family(tmp_path, "gpt_oss")
    file = target / "config.json"
    content = json.loads(file.read_text()) | {"quantization_config": {"quant_method": "mxfp4"}}
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"\(mxfp4\) are not supported; use the bf16 checkpoint"):
        open_target(target)
