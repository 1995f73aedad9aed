"""The tokenizer of a checkpoint: identity, agreement between target and draft, encoding and
decoding.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from policies.errors import UserError
from runtime.chat_template import read_chat_template
from runtime.checkpoints import CheckpointFacts
from traces.strict_json import read_object


def tokenizer_hash(path: Path) -> str:
    """sha256 of tokenizer.json's content, without its padding and truncation settings, which change
    no token.
    """
    file = path / "tokenizer.json"
    if not file.is_file():
        raise UserError(
            f"{path}: no tokenizer.json there; copy the one the checkpoint was trained with"
        )
    content = read_object(file, "download it again")
    kept = {key: value for key, value in content.items() if key not in ("padding", "truncation")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def check_same_tokenizer(target: CheckpointFacts, draft: CheckpointFacts) -> str:
    """The common tokenizer hash; UserError if target and draft do not speak the same tokens."""
    if target.vocabulary != draft.vocabulary:
        raise UserError(
            f"draft_path={draft.path}: vocabulary of {draft.vocabulary}, the target has "
            f"{target.vocabulary}; a draft must share the target's tokenizer"
        )
    ours, theirs = tokenizer_hash(target.path), tokenizer_hash(draft.path)
    if ours != theirs:
        raise UserError(
            f"draft_path={draft.path}: tokenizer {theirs[:12]} differs from the target's "
            f"{ours[:12]}; a draft must share the target's tokenizer"
        )
    return ours


class Tokenizer:
    """Text to token ids and back, from a checkpoint's tokenizer.json; the chat template from beside
    it.
    """

    def __init__(self, path: Path) -> None:
        tokenizer_hash(path)  # reports a missing or damaged file in plain words
        from transformers import PreTrainedTokenizerFast

        self._path, self.template = path, read_chat_template(path)
        file = path / "tokenizer.json"
        special = {} if self.template is None else self.template.special_tokens
        try:
            self._tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(file), **special)
        except Exception as error:  # the library raises bare ones for what it cannot make sense of
            raise UserError(f"{file}: no usable tokenizer ({error}); download it again") from None

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`; special tokens only where the text spells them out."""
        try:
            return list(self._tokenizer.encode(text, add_special_tokens=False))
        except Exception as error:  # such as an unknown word without a token for it
            raise UserError(f"{self._path}: tokenizer fails on {text!r:.40} ({error})") from None

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of `tokens`, special tokens included, so that a stop string may name one."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=False))

    def incremental(self) -> Callable[[int], str]:
        """A function that takes the tokens of a text one by one and returns what each completes; an
        unfinished character stays inside.
        """
        from tokenizers.decoders import DecodeStream

        stream = DecodeStream(skip_special_tokens=False)
        inner = self._tokenizer.backend_tokenizer
        return lambda token: stream.step(inner, token) or ""

    def chat_tokens(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Tokens of a conversation by the checkpoint's template, ready for the next answer.

        messages: role (user or assistant) and content each. UserError where the template refuses.
        """
        if self.template is None:
            raise UserError(f"{self._path}: this tokenizer has no chat template")
        try:
            text = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                chat_template=self.template.source,
                add_generation_prompt=True,
                tokenize=False,
            )
        except Exception as error:  # the template's own, whatever it does in its sandbox
            raise UserError(f"{self._path}: its chat template failed ({error})") from None
        return self.encode(str(text))
