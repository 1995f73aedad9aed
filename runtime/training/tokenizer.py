"""Byte-level BPE tokenizer shared by target and draft."""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SEPARATOR = "<|endoftext|>"
SEPARATOR_ID = 0


def train_tokenizer(corpora: dict[str, list[str]], vocabulary: int) -> Tokenizer:
    """BPE over every third document; token 0 is the separator, digits stay single tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[SEPARATOR],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    sample = (text for documents in corpora.values() for text in documents[::3])
    tokenizer.train_from_iterator(sample, trainer)
    return tokenizer
