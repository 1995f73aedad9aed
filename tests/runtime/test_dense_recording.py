from typing import Any

import torch

from runtime.dense_recording import RollingContinuation
from runtime.verify_rules import KeyedRule, make_rule
from traces.manifest import SamplingInfo

PROMPT = [9, 14, 33, 6]
GAMMA = 6


def keyed() -> KeyedRule:
    rule = make_rule(SamplingInfo("keyed", 0.8, 4), 64, torch.device("cpu"))
    assert isinstance(rule, KeyedRule)
    return rule


def fresh(draft: Any, rule: KeyedRule, text: list[int]) -> list[int]:
    """The continuation drafted from nothing, with the whole text read anew."""
    drafts: list[int] = []
    for _ in range(GAMMA):
        logits = draft.prefill([*text, *drafts])[-1]
        drafts.append(rule.propose(logits, 3, len(text) + len(drafts)).token)
    return drafts


def test_a_rolling_continuation_is_what_would_be_drafted_anew(tiny: Any) -> None:
    rule = keyed()
    texts, continuations = [], []
    tiny.draft.prefill(PROMPT)
    rolling = RollingContinuation(tiny.draft, rule, 3, GAMMA)
    text = [*PROMPT, 21]
    for step in range(24):
        texts.append(list(text))
        continuations.append([choice.token for choice in rolling.after(text)])
        # Agree with the draft twice, then not, so that runs of every kind occur.
        agreed = continuations[-1][0]
        text.append(agreed if step % 3 < 2 else (agreed + 7) % 64)
    for known, continuation in zip(texts, continuations, strict=True):
        assert continuation == fresh(tiny.draft, rule, known)


def test_agreement_saves_draft_steps(tiny: Any) -> None:
    reads = []
    hook = tiny.draft.module.register_forward_hook(lambda *_: reads.append(1))
    tiny.draft.prefill(PROMPT)
    rolling = RollingContinuation(tiny.draft, keyed(), 3, GAMMA)
    text = [*PROMPT, 21]
    steps = []
    for agree in (True, True, False, True):
        before = len(reads)
        drafts = rolling.after(text)
        steps.append(len(reads) - before)
        text.append(drafts[0].token if agree else (drafts[0].token + 7) % 64)
    hook.remove()
    assert steps == [GAMMA, 1, 1, GAMMA]
