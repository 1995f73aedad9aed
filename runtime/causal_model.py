"""One transformers language model with the KV cache of one text: the part that target and draft
share.
"""

import inspect
from collections.abc import Sequence

import torch
from torch import nn

from policies.errors import UserError
from runtime.checkpoints import CheckpointFacts


class CausalModel:
    """A model at batch 1 whose cache holds the first `length` tokens of one text.

    `forward` appends, `cut` removes from the end, `prefill` starts a new text.
    """

    def __init__(self, module: nn.Module, facts: CheckpointFacts) -> None:
        from transformers import DynamicCache

        self.module, self.facts = module, facts
        self.device = next(module.parameters()).device
        # Not told of the config, it keeps all tokens also in layers with a sliding window, whose
        # mask hides what is too old: only such a cache can be cut back after a rejected draft.
        self._new_cache = DynamicCache
        self._cache = self._new_cache()
        # Renamed on the way through transformers 5; a wrong name is taken without a word.
        known = inspect.signature(type(module).forward).parameters
        self._cache_argument = "cache" if "cache" in known else "past_key_values"

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        return int(self._cache.get_seq_length())

    def prefill(self, tokens: Sequence[int], keep: int = 1) -> torch.Tensor:
        """Forget the old text and read `tokens`; logits of the last `keep` rows, float32 [keep,
        vocabulary].
        """
        self._cache = self._new_cache()
        return self.forward(tokens, keep)

    @torch.inference_mode()
    def forward(self, tokens: Sequence[int], keep: int = 0) -> torch.Tensor:
        """Append `tokens`; logits after each of the last `keep` of them (0 = all), float32 [n,
        vocabulary].
        """
        if self.length + len(tokens) > self.facts.max_positions:
            raise UserError(
                f"{self.facts.name}: {self.length + len(tokens)} tokens needed, the model reads at "
                f"most {self.facts.max_positions}; shorten the prompt or lower max_new_tokens"
            )
        ids = torch.tensor([list(tokens)], dtype=torch.int64, device=self.device)
        cache = {self._cache_argument: self._cache}
        output = self.module(input_ids=ids, use_cache=True, logits_to_keep=keep, **cache)
        return output.logits[0].float()

    def cut(self, length: int) -> None:
        """Keep the first `length` tokens; the cache must hold at least that many."""
        surplus = self.length - length
        if surplus < 0:
            raise ValueError(f"cannot cut a cache of {self.length} tokens to {length}")
        if surplus:
            self._cache.crop(-surplus)
