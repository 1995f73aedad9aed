"""The draft: a dense Qwen3 model that continues the committed text."""

from collections.abc import Sequence
from pathlib import Path

import torch

from runtime.causal_model import CausalModel
from runtime.checkpoints import CheckpointFacts, load_draft, open_draft
from runtime.tokenizers import check_same_tokenizer


class DraftModel(CausalModel):
    """The proposer. Its logits are a function of the text so far, however the cache was filled."""

    def reach(self, text: Sequence[int], gamma: int) -> int:
        """A model can always continue: all of `gamma`."""
        return gamma

    def next_logits(self, text: Sequence[int]) -> torch.Tensor:
        """Logits [vocabulary] after `text`, of which the cache must hold a proper prefix.

        Reads the tokens it has not seen: one after a rejection, two after a fully accepted window.
        """
        if self.length >= len(text):
            raise ValueError(f"the draft holds {self.length} tokens, the text has only {len(text)}")
        return self.forward(text[self.length :], keep=1)[0]

    def forget_after(self, length: int) -> None:
        """Keep at most the first `length` tokens."""
        self.cut(min(self.length, length))


def open_draft_model(
    path: str | Path | None, target: CheckpointFacts, device: str = "cpu", dtype: str = "float32"
) -> DraftModel | None:
    """Load a draft for `target`, None for none; UserError if their tokenizers differ."""
    if path is None:
        return None
    facts = open_draft(path)
    check_same_tokenizer(target, facts)
    return DraftModel(load_draft(path, device, dtype), facts)
