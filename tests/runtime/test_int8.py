"""int8 experts: what quantising does to a matrix, to the arena, to logits; no placement matters."""

from dataclasses import dataclass

import pytest
import torch
from conftest import LoadedPair, load_pair
from offload_setup import PREFERENCES, ForcedPolicy, fast_standin, random_arena, tiny_engine
from test_offloaded_logits import PROMPT, TOKENS, WINDOWS, plain_logits, verify_logits

from policies.errors import UserError
from runtime.checkpoints import open_target
from runtime.engine_settings import EngineSettings
from runtime.expert_layout import INT8, ExpertLayout, layout_of
from runtime.expert_math import activated, expert_rows
from runtime.families import FAMILIES
from runtime.host_arena import load_arena
from runtime.int8 import quantise, rounded
from runtime.lossless import prove_lossless
from runtime.pace import Pace
from runtime.prompts import Prompt
from runtime.slot_kernels import HostLoop, MaskedLoop
from runtime.slots import SlotPool
from runtime.target_model import TargetModel, open_target_model
from runtime.tiny_families import HIDDEN, WIDTH, make_tiny_family
from tests.architecture.test_configs import content

CONFIGS = {
    "qwen3-30b-a3b": False, "qwen3-235b-a22b": False, "mixtral-8x7b": False, "olmoe": False,
    "deepseek-v2-lite": False, "gpt-oss-20b": True, "gpt-oss-120b": True,
}  # fmt: skip


@dataclass(frozen=True)
class Quantised:
    """A pair, and the plain target with the values that int8 gives back."""

    pair: LoadedPair
    target: TargetModel


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Quantised:
    path = tmp_path_factory.mktemp(request.param)
    make_tiny_family(path, request.param, seed=6)
    return Quantised(load_pair(path), open_target_model(path / "target", expert_format=INT8))


def random_matrix(rows: int = 40, columns: int = 70, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    sizes = 10.0 ** torch.randint(-6, 4, (rows, 1), generator=generator)
    return torch.randn(rows, columns, generator=generator) * sizes


def test_an_error_is_at_most_half_a_step_of_its_output() -> None:
    matrix = random_matrix()
    whole, scale = quantise(matrix)
    assert (whole.dtype, scale.shape) == (torch.int8, (40,))
    step = matrix.abs().amax(dim=1) / 127
    torch.testing.assert_close(scale, step)
    error = (rounded(matrix) - matrix).abs()
    assert (error <= step[:, None] * 0.5001).all()
    assert (whole.int().abs().amax(dim=1) == 127).all(), "the whole range is used"
    assert int(whole.int().abs().max()) == 127, "and never more of it, so that -x and x are alike"


def test_rounding_twice_changes_nothing() -> None:
    once = rounded(random_matrix())
    torch.testing.assert_close(rounded(once), once, rtol=1e-6, atol=0)


@pytest.mark.parametrize("matrix", [torch.zeros(3, 5), torch.full((2, 4), 1e-45)])
def test_outputs_without_weight_stay_zero(matrix: torch.Tensor) -> None:
    whole, scale = quantise(matrix)
    assert torch.isfinite(scale).all()
    assert (whole.float() * scale[:, None]).abs().max() <= 1e-44


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("biased", [False, True])
def test_a_row_computes_what_its_rounded_weights_say(dtype: torch.dtype, biased: bool) -> None:
    layout = ExpertLayout(1, 1, 10, 7, dtype, biased=biased, quantised=True)
    row = torch.full((layout.row_bytes,), 0xAB, dtype=torch.uint8)
    shapes = {"gate": (7, 10), "up": (7, 10), "down": (10, 7)}
    if biased:
        shapes |= {"gate bias": (7,), "up bias": (7,), "down bias": (10,)}
    parts = {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()}
    for name, values in parts.items():
        layout.store(row, name, values)
    hidden = torch.randn(3, 10).to(dtype)
    ours = expert_rows(hidden, layout.weights(row), activated(torch.nn.functional.silu))
    exact = {n: rounded(v.float()) if "bias" not in n else v.float() for n, v in parts.items()}
    unit = torch.finfo(dtype).eps

    def product(inputs: torch.Tensor, error: torch.Tensor, name: str) -> list[torch.Tensor]:
        """Exact outputs of one matrix, and a bound on what rounding each step once adds."""
        matrix, bias = exact[name], exact.get(f"{name} bias", torch.zeros(()))
        sizes = inputs.abs() @ matrix.abs().T + bias.abs()
        return [inputs @ matrix.T + bias, error @ matrix.abs().T + unit * sizes]

    gate, gate_error = product(hidden.float(), torch.zeros(3, 10), "gate")
    up, up_error = product(hidden.float(), torch.zeros(3, 10), "up")
    gating = torch.nn.functional.silu(gate)  # its slope is below 1.1
    gated_error = 1.1 * gate_error * up.abs() + (gating.abs() + gate_error) * up_error
    gated_error += unit * (gating * up).abs()
    expected, error = product(gating * up, gated_error, "down")
    assert ((ours.float() - expected).abs() <= error).all()
    assert error.mean() < 40 * unit * expected.abs().mean(), "a bound that says something"


@pytest.mark.parametrize(("name", "biased"), CONFIGS.items())
def test_the_simulator_reckons_with_the_bytes_that_the_arena_has(name: str, biased: bool) -> None:
    sizes = content("model", name)
    for dtype, quantised in (("int8", True), ("fp16", False)):
        layout = ExpertLayout(
            1, 1, sizes["hidden"], sizes["expert_width"], torch.bfloat16, biased, quantised
        )
        assert layout.expert_bytes == sizes["expert_bytes"][dtype]


def test_half_the_bytes_of_bf16_and_a_scale_per_output(family: Quantised) -> None:
    facts = family.pair.target.facts
    whole = layout_of(facts, torch.bfloat16).expert_bytes
    outputs = 2 * WIDTH + HIDDEN
    biases = 2 * outputs if "gate bias" in facts.target_family.names.parts else 0
    expected = (whole - biases) // 2 + 4 * outputs + biases
    assert layout_of(facts, torch.bfloat16, INT8).expert_bytes == expected


def test_logits_equal_the_rounded_model_under_every_placement(family: Quantised) -> None:
    expected = plain_logits(family.target, WINDOWS, PROMPT)
    results = []
    for preference in PREFERENCES:
        policy, device = ForcedPolicy(preference), fast_standin()
        with tiny_engine(family.pair.path, policy, device, slots=5, experts=INT8) as engine:
            results.append(verify_logits(engine, WINDOWS, PROMPT))
    for a, b in zip(results[0], expected, strict=True):
        torch.testing.assert_close(a, b, atol=5e-5, rtol=1e-5)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))
    unrounded = plain_logits(family.pair.target, WINDOWS, PROMPT)
    worst = max(float((a - b).abs().max()) for a, b in zip(unrounded, expected, strict=True))
    assert worst > 1e-3, "the experts were rounded indeed"


def test_texts_equal_plain_decoding_of_the_rounded_model(
    family: Quantised, tiny_prompts: list[Prompt]
) -> None:
    prompts = [prompt.tokens for prompt in tiny_prompts]
    with tiny_engine(family.pair.path, ForcedPolicy("MIXED"), slots=5, experts=INT8) as engine:
        texts = [
            [token for block in engine.generate(prompt, TOKENS) for token in block]
            for prompt in prompts
        ]
    proof = prove_lossless(family.target, prompts, texts, engine.settings, TOKENS)
    assert proof.identical, proof


def test_the_arena_is_the_same_at_every_loading(family: Quantised) -> None:
    facts = open_target(family.pair.path / "target")
    layout = layout_of(facts, torch.float32, INT8)
    arenas = []
    for _ in range(2):
        device = fast_standin()
        arenas.append(load_arena(facts, layout, device))
        device.close()
    for section in layout.sections.values():  # without the padding between them
        first, second = (arena.rows[:, section.begin : section.end] for arena in arenas)
        assert torch.equal(first, second)


def test_an_unknown_format_lists_the_known_ones() -> None:
    with pytest.raises(UserError, match="experts=int4 is unknown; use one of same, int8"):
        EngineSettings(slots=3, experts="int4")


@pytest.mark.parametrize(("biased", "quantised"), [(True, False), (False, True), (True, True)])
def test_both_loops_over_slots_know_biases_and_scales(biased: bool, quantised: bool) -> None:
    """The masked loop is what an accelerator runs for experts that the Triton kernel refuses."""
    layout = ExpertLayout(1, 5, 16, 12, torch.float32, biased, quantised)
    device = fast_standin()
    pool = SlotPool(layout, 3, 0, device)
    pool.rows.copy_(random_arena(layout, device, seed=5).rows[:3])
    hidden = torch.randn(4, 16)
    experts = torch.tensor([[0, 1], [1, 2], [4, 0], [3, 1]])
    slot_of = torch.tensor([2, 0, -1, -1, 1], dtype=torch.int32)
    gating, results = activated(torch.nn.functional.silu), []
    for kernel in (HostLoop(pool, gating, Pace(None)), MaskedLoop(pool, gating)):
        contributions = torch.full((4, 2, 16), float("nan"))
        kernel.compute(hidden, experts, slot_of, contributions)
        results.append(contributions)
    device.close()
    torch.testing.assert_close(results[0], results[1], equal_nan=True)
    held = slot_of[experts] >= 0
    assert torch.equal(results[0].isnan().any(-1), ~held)
