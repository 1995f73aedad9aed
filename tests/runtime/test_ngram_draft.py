"""Prompt lookup: what it proposes, and that it changes no text."""

from itertools import chain
from typing import Any

import pytest
import torch

from runtime.ngram_draft import NgramDraft
from runtime.speculative import SpeculativeDecoder
from runtime.stopping import StopRule
from runtime.verify_rules import RejectionRule, make_rule
from traces.manifest import SamplingInfo

CPU = torch.device("cpu")


def proposed(text: list[int], gamma: int = 4, longest: int = 3) -> list[int]:
    draft = NgramDraft(64, longest=longest)
    draft.prefill(text)
    reach = draft.reach(text, gamma)
    grown = list(text)
    for _ in range(reach):
        logits = draft.next_logits(grown)
        grown.append(int(logits.argmax()))
        assert torch.isfinite(logits).sum() == 1
    return grown[len(text) :]


def test_the_longest_match_wins_and_of_equal_ones_the_latest() -> None:
    assert proposed([1, 2, 3, 9, 8, 2, 3, 7, 6, 1, 2, 3]) == [9, 8, 2, 3]
    assert proposed([2, 3, 9, 9, 2, 3, 7, 6, 5, 4, 2, 3]) == [7, 6, 5, 4]


def test_repetitions_go_round_in_a_circle() -> None:
    assert proposed([5, 6, 5, 6]) == [5, 6, 5, 6]
    assert proposed([7, 7]) == [7, 7, 7, 7]


@pytest.mark.parametrize("text", [[1], [1, 2, 3, 4]])
def test_nothing_repeats_nothing_is_proposed(text: list[int]) -> None:
    assert proposed(text) == []


def test_only_committed_text_is_remembered() -> None:
    draft = NgramDraft(64)
    draft.prefill([1, 2, 1])
    assert draft.reach([1, 2, 1], 2) == 2
    assert int(draft.next_logits([1, 2, 1]).argmax()) == 2
    draft.forget_after(3)
    assert draft.reach([1, 2, 1, 9], 2) == 0, "the rejected 2 is not part of the text"
    draft.prefill([9])
    assert draft.reach([9], 2) == 0, "the text before is forgotten"


def test_asking_beyond_the_proposal_is_an_error() -> None:
    draft = NgramDraft(64)
    draft.prefill([1, 2, 1])
    draft.reach([1, 2, 1], 1)
    with pytest.raises(ValueError, match=r"ask reach\(\) first"):
        draft.next_logits([1, 2, 1, 2])


@pytest.mark.parametrize("mode", ["greedy", "keyed"])
def test_the_text_is_that_of_the_target_alone(tiny: Any, mode: Any) -> None:
    rule = make_rule(SamplingInfo(mode, 0.3, 9), 64, CPU)
    prompt, stop = [9, 10, 11, 9, 10, 11, 9, 10], StopRule(60)
    plain = SpeculativeDecoder(tiny.target, None, rule, 0).generate(0, prompt, stop)
    expected = list(chain.from_iterable(plain))
    decoder = SpeculativeDecoder(tiny.target, NgramDraft(64), rule, 4)
    blocks = list(decoder.generate(0, prompt, stop))
    assert list(chain.from_iterable(blocks)) == expected
    assert {len(block) for block in blocks} > {1}, "no draft was ever accepted"


def test_rejection_sampling_with_certain_drafts_keeps_the_distribution() -> None:
    """q is 1 at one token: it is accepted with p, and never comes back from the residual."""
    logits = torch.randn(2, 5, generator=torch.Generator().manual_seed(1))
    p = torch.softmax(logits[0] / 0.9, -1).numpy()
    rule, runs, counts = RejectionRule(0.9, seed=6), 4000, torch.zeros(5)
    certain = torch.full((5,), -float("inf"))
    certain[3] = 0.0
    for request in range(runs):
        draft = rule.propose(certain, request, 10).token
        assert draft == 3
        verdict = rule.verify(logits, [draft], request, 10)
        counts[draft if verdict.accepted else verdict.following] += 1
    shares = counts.numpy() / runs
    assert (abs(shares - p) < 4.5 * (p * (1 - p) / runs) ** 0.5).all()
