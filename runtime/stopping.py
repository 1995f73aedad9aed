"""When a text ends: end tokens, a length limit, stop strings; checked at every token of an accepted
block.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from policies.errors import UserError

StopReason = Literal["end_token", "length", "stop_string"]


@dataclass(frozen=True)
class StopRule:
    """max_new_tokens counts from the first token after the prompt. `decode` is needed for stop
    strings only.
    """

    max_new_tokens: int
    end_tokens: frozenset[int] = frozenset()
    stop_strings: tuple[str, ...] = ()
    decode: Callable[[Sequence[int]], str] | None = None
    _tail: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise UserError(f"max_new_tokens={self.max_new_tokens} must be at least 1")
        if self.stop_strings and (self.decode is None or not all(self.stop_strings)):
            raise UserError("stop strings must not be empty and need a tokenizer to decode with")
        # A token is at least one byte; up to three more may be the rest of a character cut in two.
        longest = max((len(text.encode()) for text in self.stop_strings), default=0)
        object.__setattr__(self, "_tail", longest + 3)

    def cut(self, new_tokens: Sequence[int], block: Sequence[int]) -> tuple[int, StopReason | None]:
        """How many tokens of `block` to keep after `new_tokens`, and why the text ends there, if it
        does.

        The token that ends the text is kept: an end token, or the one that completes a stop string.
        """
        text = list(new_tokens)
        for kept, token in enumerate(block, start=1):
            text.append(token)
            if token in self.end_tokens:
                return kept, "end_token"
            if self._completes_stop_string(text):
                return kept, "stop_string"
            if len(text) >= self.max_new_tokens:
                return kept, "length"
        return len(block), None

    def _completes_stop_string(self, text: list[int]) -> bool:
        if not self.stop_strings or self.decode is None:
            return False
        ending = self.decode(text[-self._tail :])
        return any(stop in ending for stop in self.stop_strings)
