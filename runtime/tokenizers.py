"""The tokenizer of a checkpoint: identity, agreement between target and draft, encoding and
decoding.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from policies.errors import UserError
from runtime.checkpoints import CheckpointFacts


def tokenizer_hash(path: Path) -> str:
    """sha256 of tokenizer.json's content, without its padding and truncation settings, which change
    no token.
    """
    file = path / "tokenizer.json"
    if not file.is_file():
        raise UserError(
            f"{path}: no tokenizer.json there; copy the one the checkpoint was trained with"
        )
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: not valid JSON ({error}); download it again") from None
    kept = {key: value for key, value in content.items() if key not in ("padding", "truncation")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def check_same_tokenizer(target: CheckpointFacts, draft: CheckpointFacts) -> str:
    """The common tokenizer hash; UserError if target and draft do not speak the same tokens."""
    if target.vocabulary != draft.vocabulary:
        raise UserError(
            f"draft={draft.path}: vocabulary of {draft.vocabulary}, the target has "
            f"{target.vocabulary}; a draft must share the target's tokenizer"
        )
    ours, theirs = tokenizer_hash(target.path), tokenizer_hash(draft.path)
    if ours != theirs:
        raise UserError(
            f"draft={draft.path}: tokenizer {theirs[:12]} differs from the target's {ours[:12]}; "
            "a draft must share the target's tokenizer"
        )
    return ours


class Tokenizer:
    """Text to token ids and back, from a checkpoint's tokenizer.json alone."""

    def __init__(self, path: Path) -> None:
        tokenizer_hash(path)  # reports a missing or damaged file in plain words
        from transformers import PreTrainedTokenizerFast

        self._tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path / "tokenizer.json"))

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`; special tokens only where the text spells them out."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of `tokens`, special tokens included, so that a stop string may name one."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=False))
