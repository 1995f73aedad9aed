"""Prompts: JSON lines with "id", "text" and optionally "tokens", as shipped per workload or from a
user's file.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policies.errors import UserError

SHIPPED_PROMPTS = Path(__file__).parent / "pretrained" / "prompts"


@dataclass(frozen=True)
class Prompt:
    """Tokens that a request starts from; `name` says where they come from."""

    name: str
    tokens: tuple[int, ...]


def shipped_workloads() -> tuple[str, ...]:
    """Names of the workloads whose prompts are part of the package."""
    return tuple(sorted(file.stem for file in SHIPPED_PROMPTS.glob("*.jsonl")))


def shipped_prompts(workload: str) -> Path:
    """The prompt file of a shipped workload; UserError listing those that exist."""
    if workload not in shipped_workloads():
        raise UserError(
            f"workload={workload} is unknown; shipped are "
            f"{', '.join(shipped_workloads()) or 'none'}, "
            "or give your own with prompts=<file>.jsonl"
        )
    return SHIPPED_PROMPTS / f"{workload}.jsonl"


def read_prompts(path: str | Path, encode: Callable[[str], Sequence[int]]) -> list[Prompt]:
    """Prompts of a JSON-lines file, in order; `encode` serves lines without a list of tokens."""
    file = Path(path)
    if not file.is_file():
        raise UserError(f"prompts={file}: no such file; give JSON lines with an id and a text each")
    prompts = []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"prompts={file}: not text in UTF-8 ({error})") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            prompts.append(_parse(line, f"{file}:{number}", f"line {number}", encode))
    if not prompts:
        raise UserError(
            f"prompts={file}: no prompts in it; give JSON lines with an id and a text each"
        )
    return prompts


def check_prompts(
    prompts: Sequence[Prompt], vocabulary: int, new_tokens: int, max_positions: int
) -> None:
    """UserError unless every prompt fits: known tokens, room for `new_tokens` more."""
    for prompt in prompts:
        if not prompt.tokens:
            raise UserError(f"prompt {prompt.name}: empty; give at least one token")
        if min(prompt.tokens) < 0 or max(prompt.tokens) >= vocabulary:
            raise UserError(
                f"prompt {prompt.name}: token {max(prompt.tokens)} in a vocabulary of "
                f"{vocabulary}; its tokens are of another tokenizer, "
                "remove them so that the text is encoded anew"
            )
        needed = len(prompt.tokens) + new_tokens
        if needed > max_positions:
            raise UserError(
                f"prompt {prompt.name}: {len(prompt.tokens)} tokens and up to {new_tokens} more "
                f"do not fit the model's {max_positions} positions; "
                "shorten it or lower max_new_tokens"
            )


def _parse(line: str, where: str, name: str, encode: Callable[[str], Sequence[int]]) -> Prompt:
    try:
        record: Any = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: not valid JSON ({error.msg} at column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not valid JSON ({error})") from None
    if not isinstance(record, dict):
        raise UserError(f"{where}: expected a JSON object with an id and a text")
    tokens, text = record.get("tokens"), record.get("text")
    if not isinstance(tokens, list):
        if not isinstance(text, str):
            raise UserError(f'{where}: needs "text" (a string) or "tokens" (a list of numbers)')
        tokens = list(encode(text))
    if not all(isinstance(token, int) and not isinstance(token, bool) for token in tokens):
        raise UserError(f'{where}: "tokens" must be whole numbers')
    return Prompt(str(record.get("id", name)), tuple(tokens))
