"""After every pass both caches are what they were before it, plus the committed text."""

from typing import Any

import pytest
import torch

from runtime.pass_listener import PassListener
from runtime.speculative import SpeculativeDecoder
from runtime.stopping import StopRule
from runtime.verify_rules import make_rule
from traces.manifest import SamplingInfo

PROMPT = [9, 14, 33, 6, 21, 60]
State = list[tuple[torch.Tensor, torch.Tensor]]


def state(model: Any) -> State:
    """Copies of keys and values of every layer, [1, heads, length, head_dim]."""
    return [(layer.keys.clone(), layer.values.clone()) for layer in model._cache.layers]


def same(ours: State, theirs: State, length: int, tolerance: float = 0.0) -> bool:
    """The first `length` tokens of both, bit by bit unless a tolerance is given."""
    return all(
        torch.allclose(a[..., :length, :], b[..., :length, :], rtol=0.0, atol=tolerance)
        for one, other in zip(ours, theirs, strict=True)
        for a, b in zip(one, other, strict=True)
    )


class Watcher(PassListener):
    """Compares the caches before and after each pass."""

    def __init__(self, pair: Any) -> None:
        self.models = (pair.target, pair.draft)
        self.before: list[tuple[int, State]] = []
        self.checked = self.rejected = 0

    def start_pass(self, last_token: int, gamma_max: int) -> int:
        self.before = [(model.length, state(model)) for model in self.models]
        return gamma_max

    def end_pass(self, accepted: int, committed: Any) -> None:
        for model, (length, known) in zip(self.models, self.before, strict=True):
            assert all(keys.shape[2] == model.length for keys, _ in state(model))
            assert same(state(model), known, min(length, model.length))
        self.checked += 1
        self.rejected += accepted + 1 == len(committed) and accepted < 4


@pytest.mark.parametrize("mode", ["greedy", "keyed", "rejection"])
def test_what_was_committed_before_a_pass_is_left_bit_by_bit(tiny: Any, mode: Any) -> None:
    watcher = Watcher(tiny)
    rule = make_rule(SamplingInfo(mode, 0.8, 3), 64, torch.device("cpu"))
    decoder = SpeculativeDecoder(tiny.target, tiny.draft, rule, 4, watcher)
    list(decoder.generate(0, PROMPT, StopRule(60)))
    assert watcher.checked > 10
    assert watcher.rejected > 0, "nothing was ever rolled back: this test proves nothing"


@pytest.mark.parametrize("stop", [StopRule(1), StopRule(7), StopRule(40), StopRule(40, {9, 12})])  # type: ignore[arg-type]
def test_the_caches_are_those_of_a_fresh_prefill(tiny: Any, stop: StopRule) -> None:
    """Values differ from a prefill's in the last bits: it reads all rows at once."""
    rule = make_rule(SamplingInfo("keyed", 0.8, 3), 64, torch.device("cpu"))
    decoder = SpeculativeDecoder(tiny.target, tiny.draft, rule, 4)
    text = [*PROMPT, *(t for block in decoder.generate(0, PROMPT, stop) for t in block)]
    for model in (tiny.target, tiny.draft):
        length, ended = model.length, state(model)
        assert len(PROMPT) <= length <= len(text)
        model.prefill(text[:length])
        fresh = state(model)
        assert all(k.shape == f.shape for (k, _), (f, _) in zip(ended, fresh, strict=True))
        assert same(ended, fresh, length, tolerance=2e-5)


@pytest.mark.parametrize("surplus", [1, 3, 8])
def test_reading_and_cutting_back_leaves_the_state_bit_by_bit(tiny: Any, surplus: int) -> None:
    for model in (tiny.target, tiny.draft):
        model.prefill(PROMPT)
        before = state(model)
        model.forward(list(range(10, 10 + surplus)))
        model.cut(len(PROMPT))
        after = state(model)
        assert all(torch.equal(a, b) for x, y in zip(before, after, strict=True)
                   for a, b in zip(x, y, strict=True))  # fmt: skip


def test_a_rejected_draft_in_the_cache_would_be_seen(tiny: Any) -> None:
    """Otherwise the equalities above would mean nothing."""
    tiny.target.prefill(PROMPT)
    before = state(tiny.target)
    tiny.target.prefill([*PROMPT[:-1], 7])
    assert not same(before, state(tiny.target), len(PROMPT), tolerance=2e-5)
