"""Top-k and top-p against transformers' own, at ties, and where they are refused."""

from typing import Any

import pytest
import torch
from transformers.generation.logits_process import TopKLogitsWarper, TopPLogitsWarper

from policies.errors import UserError
from runtime.truncation import Truncation
from runtime.verify_rules import KeyedRule, make_rule
from traces.manifest import SamplingInfo

CPU = torch.device("cpu")


def rows(count: int, vocabulary: int = 50) -> torch.Tensor:
    return torch.randn(count, vocabulary, generator=torch.Generator().manual_seed(5)) * 3


def kept(logits: torch.Tensor) -> list[int]:
    return torch.isfinite(logits).nonzero()[:, 0].tolist()


@pytest.mark.parametrize("top_k", [None, 1, 7, 50, 1000])
@pytest.mark.parametrize("top_p", [None, 0.01, 0.5, 0.9, 1.0])
def test_the_tokens_that_transformers_keeps(top_k: int | None, top_p: float | None) -> None:
    logits, temperature = rows(200), 0.7
    expected = logits / temperature
    nothing = torch.zeros(200, 0)
    if top_k is not None:
        expected = TopKLogitsWarper(top_k)(nothing, expected)
    if top_p is not None and top_p < 1.0:
        expected = TopPLogitsWarper(top_p)(nothing, expected)
    got = Truncation(top_k, top_p).apply(logits, temperature)
    assert torch.equal(torch.isfinite(got), torch.isfinite(expected))
    assert torch.equal(got[torch.isfinite(got)], logits[torch.isfinite(got)])


def test_of_equally_probable_tokens_the_lower_ids_are_kept() -> None:
    flat = torch.zeros(8)
    assert kept(Truncation(top_k=3).apply(flat, 1.0)) == [0, 1, 2]
    assert kept(Truncation(top_p=0.5).apply(flat, 1.0)) == [0, 1, 2, 3]
    assert kept(Truncation(top_p=0.51).apply(flat, 1.0)) == [0, 1, 2, 3, 4]
    assert kept(Truncation(top_p=1e-9).apply(flat, 1.0)) == [0]


def test_top_p_counts_what_top_k_left() -> None:
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    assert kept(Truncation(top_p=0.5).apply(logits, 1.0)) == [0, 1]
    assert kept(Truncation(top_k=2, top_p=0.55).apply(logits, 1.0)) == [0]


def test_certainty_stays_certain() -> None:
    certain = torch.full((6,), -float("inf"))
    certain[4] = 0.0
    assert kept(Truncation(3, 0.5).apply(certain, 0.8)) == [4]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"top_k": 0}, "top_k=0"),
        ({"top_k": -3}, "top_k=-3"),
        ({"top_p": 0.0}, "top_p=0.0"),
        ({"top_p": 1.5}, "top_p=1.5"),
        ({"top_p": float("nan")}, "top_p=nan"),
    ],
)
def test_impossible_limits(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Truncation(**limits)


def test_greedy_refuses_limits_that_would_do_nothing() -> None:
    with pytest.raises(UserError, match=r"sampling\.mode=greedy"):
        make_rule(SamplingInfo("greedy", 1.0, 0), 50, CPU, Truncation(top_k=2))


def test_keyed_choices_are_among_the_kept_and_the_window_does_not_matter() -> None:
    logits, limit = rows(300), Truncation(4, 0.8)
    rule = make_rule(SamplingInfo("keyed", 1.5, 3), 50, CPU, limit)
    assert isinstance(rule, KeyedRule)
    together, margins = rule.choose(logits, 0, 10)
    for place, token in enumerate(together):
        assert token in kept(limit.apply(logits[place], 1.5))
        assert rule.propose(logits[place], 0, 10 + place).token == token
    assert min(margins) >= 0
    free = make_rule(SamplingInfo("keyed", 1.5, 3), 50, CPU).choose(logits, 0, 10)[0]  # type: ignore[attr-defined]
    assert together != free, "the limit never mattered: this test proves nothing"


@pytest.mark.parametrize("mode", ["keyed", "rejection"])
def test_one_kept_token_is_greedy(mode: Any) -> None:
    logits = rows(5)
    rule = make_rule(SamplingInfo(mode, 0.9, 1), 50, CPU, Truncation(top_k=1))
    best = logits.argmax(-1).tolist()
    drafts = [rule.propose(logits[place], 0, 7 + place).token for place in range(4)]
    verdict = rule.verify(logits, drafts, 0, 7)
    assert [*drafts, verdict.following] == best
    assert verdict.accepted == 4
