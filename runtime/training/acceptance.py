"""Speculative decoding counts for one fixed target text.

Under keyed noise the target's text does not depend on the draft, and a drafted token is accepted
exactly when both models choose the same token after the same accepted prefix. One draft pass over
the finished text therefore gives every decision of the token-by-token loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from runtime.training.key_value_cache import KeyValueCache
from runtime.training.keyed_noise import keyed_choice
from runtime.training.network import Network


@dataclass(frozen=True)
class DraftCounts:
    """Counts over verify rounds; a round commits its accepted tokens and one of the target."""

    rounds: int
    proposed: int
    accepted: int
    rejected: int

    @property
    def acceptance(self) -> float:
        """Accepted share of the drafted positions the verification reached."""
        return self.accepted / max(1, self.accepted + self.rejected)

    @property
    def accepted_per_proposed(self) -> float:
        """Accepted share of all drafted tokens, also those behind a rejection."""
        return self.accepted / max(1, self.proposed)

    @property
    def tokens_per_pass(self) -> float:
        """Committed tokens per verify pass, including the target's own."""
        return (self.accepted + self.rounds) / max(1, self.rounds)


@torch.inference_mode()
def write_text(
    target: Network, prompts: torch.Tensor, noise: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Continue int64[B, P] prompts by keyed choices: int64[B, P + N] for float[B, N, V] noise."""
    batch, length = prompts.shape
    total = length + noise.shape[1]
    tokens = torch.zeros(batch, total, dtype=torch.long)
    tokens[:, :length] = prompts
    cache = KeyValueCache(target.shape, batch, total)
    fed = 0
    for position in range(length, total):
        logits = target(tokens[:, fed:position], cache)[:, -1]
        tokens[:, position] = keyed_choice(logits, noise[:, position - length], temperature)
        fed = position
    return tokens


@torch.inference_mode()
def draft_matches(
    draft: Network, tokens: torch.Tensor, noise: torch.Tensor, temperature: float
) -> np.ndarray:
    """bool[B, N]: the draft would have chosen the target's token at each written position."""
    written = noise.shape[1]
    logits = draft(tokens[:, :-1])[:, -written:]
    return (keyed_choice(logits, noise, temperature) == tokens[:, -written:]).numpy()


def count_rounds(matches: np.ndarray, draft_length: int) -> DraftCounts:
    """Play the verify rounds over bool[B, N]; rounds that would pass the end are left out.

    The first written token comes from the prefill pass and is not drafted.
    """
    rounds = accepted = rejected = 0
    for row in matches:
        position = 1
        while position + draft_length < len(row):
            window = row[position : position + draft_length]
            run = draft_length if window.all() else int(window.argmin())
            accepted += run
            rejected += run < draft_length
            rounds += 1
            position += run + 1
    return DraftCounts(rounds, rounds * draft_length, accepted, rejected)


def total_counts(parts: list[DraftCounts]) -> DraftCounts:
    """Sum of several counts."""
    return DraftCounts(
        sum(part.rounds for part in parts),
        sum(part.proposed for part in parts),
        sum(part.accepted for part in parts),
        sum(part.rejected for part in parts),
    )
