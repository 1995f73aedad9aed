"""Chat templates: found where checkpoints keep them, rendered in a sandbox, never trusted."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from policies.errors import UserError
from runtime.checkpoints import SHIPPED_PAIR
from runtime.tokenizers import Tokenizer

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
HELLO = [{"role": "user", "content": "hello"}]


def tokenizer(folder: Path, jinja: str | None = None, **config: Any) -> Tokenizer:
    shutil.copy(SHIPPED_PAIR / "target" / "tokenizer.json", folder)
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if jinja is not None:
        (folder / "chat_template.jinja").write_text(jinja)
    return Tokenizer(folder)


@pytest.mark.parametrize(
    "config",
    [
        {"chat_template": TEMPLATE, "bos_token": "<|endoftext|>"},
        {"chat_template": TEMPLATE, "bos_token": {"content": "<|endoftext|>", "lstrip": False}},
        {
            "chat_template": [
                {"name": "tool_use", "template": "no"},
                {"name": "default", "template": TEMPLATE},
            ],
            "bos_token": "<|endoftext|>",
        },
    ],
)
def test_the_template_of_the_configuration(config: dict[str, Any], tmp_path: Path) -> None:
    made = tokenizer(tmp_path, **config)
    assert made.decode(made.chat_tokens(HELLO)) == "<|endoftext|>[user]hello[assistant]"
    assert made.chat_tokens(HELLO)[0] == 0, "the special token is one token"


def test_the_template_file_comes_first(tmp_path: Path) -> None:
    made = tokenizer(tmp_path, jinja="A{{ messages[0].content }}", chat_template="B")
    assert made.decode(made.chat_tokens(HELLO)) == "Ahello"


def test_no_template(tmp_path: Path) -> None:
    made = tokenizer(tmp_path)
    assert made.template is None
    with pytest.raises(UserError, match="no chat template"):
        made.chat_tokens(HELLO)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{% include '/etc/passwd' %}",
        "{{ raise_exception('roles must alternate') }}",
        "{% for %}",
        "{{ 1 // 0 }}",
    ],
)
def test_a_template_that_breaks_out_or_down_is_one_error(template: str, tmp_path: Path) -> None:
    made = tokenizer(tmp_path, chat_template=template)
    with pytest.raises(UserError, match="its chat template failed"):
        made.chat_tokens(HELLO)


def test_a_damaged_configuration_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(UserError, match=r"tokenizer_config\.json: not valid JSON"):
        tokenizer(tmp_path)
