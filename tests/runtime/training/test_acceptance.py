"""The shortcut over the finished text against a token-by-token speculative loop."""

from __future__ import annotations

import numpy as np
import torch

from runtime.training.acceptance import count_rounds, draft_matches, write_text
from runtime.training.key_value_cache import KeyValueCache
from runtime.training.keyed_noise import gumbel_block, keyed_choice
from runtime.training.network import Network, initialise
from tests.runtime.training.tiny_texts import TINY_DRAFT, TINY_TARGET


def loop(target, draft, prompt, noise, draft_length):
    """Committed tokens and (accepted, rejected) per round of an ordinary speculative loop."""
    text, total = prompt.tolist(), len(prompt) + len(noise)
    caches = [KeyValueCache(network.shape, 1, total + 16) for network in (target, draft)]

    def step(network, cache, tokens):
        return network(torch.tensor([tokens]), cache)[0]

    def choice(logits, position):
        return int(keyed_choice(logits, noise[position - len(prompt)], 0.8))

    text.append(choice(step(target, caches[0], text)[-1], len(text)))
    rounds = []
    while len(text) + draft_length < total:
        proposed = []
        for number in range(draft_length):
            known = (text + proposed)[caches[1].length :]
            logits = step(draft, caches[1], known)[-1]
            proposed.append(choice(logits, len(text) + number))
        start = len(text) - 1
        logits = step(target, caches[0], text[start:] + proposed)
        wanted = [choice(row, start + 1 + number) for number, row in enumerate(logits)]
        accepted = 0
        while accepted < draft_length and proposed[accepted] == wanted[accepted]:
            accepted += 1
        text += wanted[: accepted + 1]
        caches[0].length = len(text) - 1
        caches[1].length = min(caches[1].length, len(text) - 1)
        rounds.append((accepted, int(accepted < draft_length)))
    return text, rounds


def test_shortcut_equals_the_loop():
    target, draft = (Network(s).requires_grad_(False) for s in (TINY_TARGET, TINY_DRAFT))
    initialise(target, 1)
    initialise(draft, 2)
    # The same embedding makes the two agree now and then.
    draft.model.embed_tokens = target.model.embed_tokens
    for network in (target, draft):
        network.model.norm.weight.fill_(8.0)
    noise = gumbel_block(9, range(1), range(60), TINY_TARGET.vocabulary)
    prompt = torch.arange(5, 15)
    text = write_text(target, prompt[None], noise, 0.8)
    counts = count_rounds(draft_matches(draft, text, noise, 0.8), 3)
    looped, rounds = loop(target, draft, prompt, noise[0], 3)
    assert looped == text[0, : len(looped)].tolist()
    assert counts.rounds == len(rounds)
    assert counts.accepted == sum(accepted for accepted, _ in rounds)
    assert counts.rejected == sum(rejected for _, rejected in rounds)


def test_counts_of_a_known_pattern():
    row = np.array([0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1], dtype=bool)
    # Rounds from positions 1 (3 accepted, token 4 is the bonus), 5 (1 accepted), 7 (3 accepted).
    counts = count_rounds(row[None], 3)
    assert (counts.rounds, counts.proposed) == (3, 9)
    assert (counts.accepted, counts.rejected) == (7, 1)
    assert counts.acceptance == 7 / 8
    assert counts.tokens_per_pass == 10 / 3


def test_keyed_choice_draws_from_the_softmax():
    logits = torch.tensor([1.0, 0.0, -1.0])
    noise = gumbel_block(0, range(1), range(4000), 3)[0]
    shares = torch.bincount(keyed_choice(logits, noise, 1.0), minlength=3) / 4000
    torch.testing.assert_close(shares, logits.softmax(-1), atol=0.03, rtol=0)
