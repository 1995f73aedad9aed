"""Tokens to text while they come: whole characters only, nothing of a stop string."""

from collections.abc import Iterable, Sequence

from runtime.tokenizers import Tokenizer


class TextStream:
    """The text of one request, piece by piece.

    A character may be spread over several tokens, and a stop string over several blocks; both are
    held back until it is clear what they are. Tokens in `silent` (end tokens) show nothing.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stop_strings: Sequence[str] = (),
        silent: frozenset[int] = frozenset(),
    ) -> None:
        self._tokenizer, self._stops, self._silent = tokenizer, tuple(stop_strings), silent
        self._step = tokenizer.incremental()
        self._tokens: list[int] = []
        self._decoded = 0  # characters that came out of the tokens so far
        self._held = ""
        self._stopped = False
        self.text = ""  # all that was shown

    def push(self, tokens: Iterable[int]) -> str:
        """The text that `tokens` add and that can be shown now."""
        for token in tokens:
            if token not in self._silent:
                self._tokens.append(token)
                piece = self._step(token)
                self._decoded += len(piece)
                self._held += piece
        return self._show(whole=False)

    def finish(self) -> str:
        """The rest: what was held back and turned out to be text, a cut character as U+FFFD."""
        self._held += self._tokenizer.decode(self._tokens)[self._decoded :]
        return self._show(whole=True)

    def _show(self, whole: bool) -> str:
        if self._stopped:
            return ""
        found = [place for stop in self._stops if (place := self._held.find(stop)) >= 0]
        end = min(found, default=len(self._held) if whole else self._settled())
        shown, self._held = self._held[:end], self._held[end:]
        self._stopped = bool(found)
        self.text += shown
        return shown

    def _settled(self) -> int:
        """How much of what is held cannot be the begin of a stop string."""
        for start in range(len(self._held)):
            if any(stop.startswith(self._held[start:]) for stop in self._stops):
                return start
        return len(self._held)
