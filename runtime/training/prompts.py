"""Fixed held-out prompts: windows of validation text that occur nowhere in the training text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from runtime.training.recipe import WORKLOADS, CorpusRecipe
from runtime.training.token_store import Split
from runtime.training.tokenizer import SEPARATOR_ID


@dataclass(frozen=True)
class Prompt:
    """One held-out prompt; ``tokens`` are the tokenizer's ids of ``text``."""

    id: str
    text: str
    tokens: list[int]


def choose_prompts(split: Split, tokenizer: Tokenizer, recipe: CorpusRecipe) -> list[Prompt]:
    """Spread, non-overlapping windows per workload that begin at a line boundary."""
    prompts = []
    length = recipe.prompt_tokens
    for workload in WORKLOADS:
        held_out = split.validation[workload]
        spread = np.linspace(0, len(held_out) - length, recipe.prompts_per_workload + 1)
        free = 0
        for number, start in enumerate(spread[:-1].astype(int).tolist()):
            begin = first_clean_window(split, tokenizer, workload, max(start, free), length)
            free = begin + length
            tokens = held_out[begin:free].tolist()
            prompts.append(Prompt(f"{workload}-{number:02d}", tokenizer.decode(tokens), tokens))
    return prompts


def first_clean_window(
    split: Split, tokenizer: Tokenizer, workload: str, start: int, length: int
) -> int:
    """First position at or after ``start`` whose window is usable.

    Usable: at a line boundary, within one document, unchanged by decoding and encoding, and
    nowhere in the training text.
    """
    held_out = split.validation[workload]
    for begin in range(start, len(held_out) - length):
        window = held_out[begin : begin + length]
        if not (window != SEPARATOR_ID).all() or not at_line_boundary(tokenizer, held_out, begin):
            continue
        tokens = window.tolist()
        if tokenizer.encode(tokenizer.decode(tokens)).ids != tokens:
            continue
        if not any(occurs(window, text) for text in split.training.values()):
            return begin
    raise ValueError(f"no usable {length}-token prompt in {workload} after token {start}")


def at_line_boundary(tokenizer: Tokenizer, text: np.ndarray, begin: int) -> bool:
    """Whether a line or document ends before token ``begin`` or the token starts with its end."""
    if begin == 0 or text[begin - 1] == SEPARATOR_ID:
        return True
    before, first = (tokenizer.decode([int(token)]) for token in text[begin - 1 : begin + 1])
    return before.endswith("\n") or first.startswith("\n")


def occurs(window: np.ndarray, text: np.ndarray) -> bool:
    """Whether uint16 ``window`` is a contiguous part of uint16 ``text``."""
    needle, haystack = window.tobytes(), text.tobytes()
    at = haystack.find(needle)
    # A match at an odd byte straddles two tokens and does not count.
    while at >= 0 and at % 2:
        at = haystack.find(needle, at + 1)
    return at >= 0


def write_prompts(folder: Path, prompts: list[Prompt]) -> None:
    """One JSON object per line in ``<workload>.jsonl``."""
    folder.mkdir(parents=True, exist_ok=True)
    for workload in WORKLOADS:
        lines = [
            json.dumps({"id": prompt.id, "text": prompt.text, "tokens": prompt.tokens})
            for prompt in prompts
            if prompt.id.rsplit("-", 1)[0] == workload
        ]
        (folder / f"{workload}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_prompts(folder: Path, workload: str) -> list[Prompt]:
    """Prompts of one workload in file order."""
    text = (folder / f"{workload}.jsonl").read_text(encoding="utf-8")
    return [Prompt(**json.loads(line)) for line in text.splitlines()]
