"""The text of a chat: what the model is given to answer the next line."""

from runtime.tokenizers import Tokenizer

USER, ASSISTANT = "user", "assistant"


class Conversation:
    """By the tokenizer's chat template where it has one, else the lines one after the other."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._turns: list[dict[str, str]] = []

    @property
    def style(self) -> str:
        """How turns become one text, in words."""
        if self._tokenizer.template is None:
            return "no chat template in this tokenizer: your lines are continued as plain text"
        return "chat template of the tokenizer"

    def ask(self, line: str) -> list[int]:
        """Tokens of everything so far and `line`, ready for the answer."""
        self._turns.append({"role": USER, "content": line})
        if self._tokenizer.template is not None:
            return self._tokenizer.chat_tokens(self._turns)
        return self._tokenizer.encode(self._plain())

    def answered(self, text: str) -> None:
        """The model's answer, whole or interrupted."""
        self._turns.append({"role": ASSISTANT, "content": text})

    def take_back(self) -> None:
        """Forget the last question, which got no answer."""
        del self._turns[-1]

    def reset(self) -> None:
        """Start anew."""
        self._turns.clear()

    def _plain(self) -> str:
        text = ""
        for turn in self._turns:
            if text and not text.endswith("\n"):
                text += "\n"
            text += turn["content"] + ("\n" if turn["role"] == USER else "")
        return text
