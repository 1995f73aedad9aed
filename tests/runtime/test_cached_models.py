from typing import Any

import pytest
import torch

from policies.errors import UserError

TEXT = [9, 14, 33, 6, 21, 60, 17, 40, 8, 12, 55, 30]


def whole_text_logits(model: Any, tokens: list[int]) -> torch.Tensor:
    """The reference: one forward over the whole text, no cache."""
    with torch.inference_mode():
        return model.module(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]


def test_forward_appends_to_the_text(tiny: Any) -> None:
    expected = whole_text_logits(tiny.target, TEXT)
    logits = [tiny.target.prefill(TEXT[:5])]
    assert logits[0].shape == (1, 64)
    logits += [tiny.target.forward(TEXT[5:6]), tiny.target.forward(TEXT[6:])]
    assert tiny.target.length == len(TEXT)
    assert torch.allclose(torch.cat(logits), expected[4:], atol=1e-5)


def test_cut_removes_from_the_end(tiny: Any) -> None:
    expected = whole_text_logits(tiny.target, TEXT)
    tiny.target.prefill(TEXT[:5])
    tiny.target.forward([1, 2, 3, 4])
    tiny.target.cut(5)
    tiny.target.cut(5)
    assert torch.allclose(tiny.target.forward(TEXT[5:]), expected[5:], atol=1e-5)
    with pytest.raises(ValueError, match="cannot cut a cache of 12 tokens to 13"):
        tiny.target.cut(13)
    tiny.target.cut(0)
    assert tiny.target.length == 0
    assert torch.allclose(tiny.target.forward(TEXT), expected, atol=1e-5)


def test_prefill_starts_a_new_text(tiny: Any) -> None:
    tiny.target.prefill([3, 3, 3])
    logits = tiny.target.prefill(TEXT, keep=2)
    assert torch.allclose(logits, whole_text_logits(tiny.target, TEXT)[-2:], atol=1e-5)


def test_too_long_a_text_is_refused_before_the_cache_changes(tiny: Any) -> None:
    tiny.target.prefill(TEXT)
    with pytest.raises(UserError, match="513 tokens needed, the model reads at most 512"):
        tiny.target.forward([1] * 501)
    assert tiny.target.length == len(TEXT)


def test_draft_logits_do_not_depend_on_how_the_cache_was_filled(tiny: Any) -> None:
    draft, expected = tiny.draft, whole_text_logits(tiny.draft, TEXT)[-1]
    results = []
    draft.prefill(TEXT[:3])
    results.append(draft.next_logits(TEXT))  # nine tokens at once
    draft.prefill(TEXT[:-2])
    results.append(draft.next_logits(TEXT))  # the two after a fully accepted window
    draft.prefill(TEXT[:1])
    for end in range(2, len(TEXT) + 1):
        logits = draft.next_logits(TEXT[:end])  # one after the other, with rejected drafts between
        draft.next_logits([*TEXT[:end], 2])
        draft.next_logits([*TEXT[:end], 2, 7])
        draft.forget_after(end)
    results.append(logits)
    for result in results:
        assert torch.allclose(result, expected, atol=1e-5)
    best = torch.topk(expected, 2).values
    if best[0] - best[1] > 1e-4:
        assert {int(result.argmax()) for result in results} == {int(expected.argmax())}


def test_draft_needs_something_new_to_read(tiny: Any) -> None:
    tiny.draft.prefill(TEXT)
    with pytest.raises(ValueError, match="holds 12 tokens"):
        tiny.draft.next_logits(TEXT)
    tiny.draft.forget_after(99)
    assert tiny.draft.length == len(TEXT)


def test_routers_in_layer_order(tiny: Any) -> None:
    layers = tiny.target.module.model.layers
    assert [layers[number].mlp.gate for number in (0, 2, 3)] == tiny.target.routers


def test_logits_are_float32_for_every_dtype(tiny_path: Any) -> None:
    from runtime.target_model import open_target_model

    target = open_target_model(tiny_path / "target", dtype="bfloat16")
    assert target.prefill(TEXT).dtype == torch.float32
