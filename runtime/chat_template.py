"""The chat template of a checkpoint, if it has one.

A template is a Jinja program that came with the weights. It is rendered by transformers in Jinja's
immutable sandbox, which reaches no file, module or attribute of ours.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traces.strict_json import read_object

SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")


@dataclass(frozen=True)
class ChatTemplate:
    """`source`: the Jinja text; `special_tokens`: the names it may use, such as bos_token."""

    source: str
    special_tokens: dict[str, str]


def read_chat_template(path: Path) -> ChatTemplate | None:
    """From chat_template.jinja or tokenizer_config.json of a checkpoint; None if it has none."""
    config = _tokenizer_config(path)
    file = path / "chat_template.jinja"
    source = file.read_text(encoding="utf-8") if file.is_file() else config.get("chat_template")
    if isinstance(source, list):  # several under names
        named = {str(one.get("name")): one.get("template") for one in source}
        source = named.get("default")
    if not isinstance(source, str):
        return None
    tokens = {name: _content(config.get(name)) for name in SPECIAL_TOKENS}
    return ChatTemplate(source, {name: text for name, text in tokens.items() if text is not None})


def _content(value: Any) -> str | None:
    """A special token is written as a string or as an object with its content."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _tokenizer_config(path: Path) -> dict[str, Any]:
    file = path / "tokenizer_config.json"
    if not file.is_file():
        return {}
    return read_object(file, "download it again")
