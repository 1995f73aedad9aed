"""What formats change, measured with the arithmetic of the engine."""

import pytest
import torch
from conftest import LoadedPair
from offload_setup import ForcedPolicy, fast_standin, tiny_engine
from test_offloaded_logits import PROMPT, WINDOWS, plain_logits, verify_logits

from runtime.expert_layout import EXPERT_FORMATS, INT8
from runtime.format_error import FORMATS, FormatError, format_errors
from runtime.resident_target import open_resident_target

TEXTS = [[9, 14, 33, 6, 21, 60], [7, 8, 9]]


@pytest.fixture(scope="module")
def errors(tiny: LoadedPair) -> dict[tuple[str, str], FormatError]:
    seen: list[str] = []
    found = format_errors(tiny.path / "target", TEXTS, seen.append)
    assert len(seen) == len(FORMATS) + 1
    return {(one.dtype, one.experts): one for one in found}


@pytest.mark.parametrize("experts", EXPERT_FORMATS)
def test_a_resident_target_computes_what_the_engine_computes(
    experts: str, tiny: LoadedPair
) -> None:
    policy = ForcedPolicy("MIXED")
    with tiny_engine(tiny.path, policy, slots=5, experts=experts) as engine:
        ours = verify_logits(engine, WINDOWS, PROMPT)
    device = fast_standin()
    target = open_resident_target(tiny.path / "target", device, expert_format=experts)
    for a, b in zip(ours, plain_logits(target, WINDOWS, PROMPT), strict=True):
        assert torch.equal(a, b)
    device.close()


def test_errors_are_those_of_the_logits(
    tiny: LoadedPair, errors: dict[tuple[str, str], FormatError]
) -> None:
    device = fast_standin()
    target = open_resident_target(tiny.path / "target", device, expert_format=INT8)
    differences, reference = [], []
    for text in TEXTS:
        exact = tiny.target.prefill(text, keep=len(text))
        reference.append(exact)
        differences.append((target.prefill(text, keep=len(text)) - exact).abs())
    device.close()
    error, seen = errors["float32", INT8], torch.cat(differences)
    assert error.rows == 9
    assert error.logit_error == pytest.approx(float(seen.mean()), rel=1e-3)
    assert error.logit_error_max == pytest.approx(float(seen.max()), rel=1e-3)
    assert error.spread == pytest.approx(float(torch.cat(reference).std(dim=-1).mean()), rel=1e-4)


def test_what_is_halved_and_what_it_costs(errors: dict[tuple[str, str], FormatError]) -> None:
    assert set(errors) == set(FORMATS)
    for error in errors.values():
        assert error.divergence > 0
        assert 0.5 < error.same_token <= 1
        assert 0.5 < error.same_experts <= 1
        assert error.logit_error < 0.1 * error.spread
    assert errors["bfloat16", INT8].expert_bytes < 0.6 * errors["bfloat16", "same"].expert_bytes
