"""A draft without a model: what followed the last words when they occurred before in the text.

Prompt lookup (Saxena 2023). It costs no memory and no time on the accelerator, and proposes nothing
where nothing repeats.
"""

from collections.abc import Sequence

import torch

LONGEST = 3
NGRAM = "ngram"  # its name where a draft is chosen


class NgramDraft:
    """Proposes the continuation of the most recent earlier occurrence of the last `longest` tokens,
    else of fewer, at least of the last one. Overlapping repetitions go round in a circle.
    """

    def __init__(
        self, vocabulary: int, device: torch.device | str = "cpu", longest: int = LONGEST
    ) -> None:
        self._vocabulary, self._device, self._longest = vocabulary, device, longest
        self._indexed = 0
        self._next: dict[tuple[int, ...], int] = {}  # n-gram -> place after its latest occurrence
        self._start = 0
        self._proposal: list[int] = []

    def prefill(self, tokens: Sequence[int]) -> None:
        """Forget the old text; the new one comes with `reach`."""
        self._indexed, self._next, self._proposal = 0, {}, []

    def reach(self, text: Sequence[int], gamma: int) -> int:
        """`gamma` where the end of `text` occurred before, else 0."""
        self._read(text)
        self._start, self._proposal = len(text), []
        for length in range(min(self._longest, len(text) - 1), 0, -1):
            place = self._next.get(tuple(text[-length:]))
            if place is not None:
                grown = list(text)
                for offset in range(gamma):
                    grown.append(grown[place + offset])
                self._proposal = grown[len(text) :]
                return gamma
        return 0

    def next_logits(self, text: Sequence[int]) -> torch.Tensor:
        """Logits [vocabulary] of certainty: 0 for the proposed token, -inf for all others."""
        place = len(text) - self._start
        if not 0 <= place < len(self._proposal):
            raise ValueError(f"nothing was proposed for place {len(text)}; ask reach() first")
        logits = torch.full((self._vocabulary,), -float("inf"), device=self._device)
        logits[self._proposal[place]] = 0.0
        return logits

    def forget_after(self, length: int) -> None:
        """Only committed text is ever indexed: there is nothing to take back."""

    def _read(self, text: Sequence[int]) -> None:
        """Index the n-grams that end before the last token of `text`."""
        for end in range(self._indexed + 1, len(text)):
            for length in range(1, min(self._longest, end) + 1):
                self._next[tuple(text[end - length : end])] = end
        self._indexed = max(self._indexed, len(text) - 1)
