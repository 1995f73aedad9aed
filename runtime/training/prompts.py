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
    """Evenly spread windows per workload that begin a line and survive decode and encode."""
    prompts = []
    for workload in WORKLOADS:
        held_out = split.validation[workload]
        spread = np.linspace(
            0, len(held_out) - recipe.prompt_tokens, recipe.prompts_per_workload + 1
        )
        for number, start in enumerate(spread[:-1].astype(int).tolist()):
            tokens = first_clean_window(split, tokenizer, workload, start, recipe.prompt_tokens)
            text = tokenizer.decode(tokens, skip_special_tokens=False)
            prompts.append(Prompt(f"{workload}-{number:02d}", text, tokens))
    return prompts


def first_clean_window(
    split: Split, tokenizer: Tokenizer, workload: str, start: int, length: int
) -> list[int]:
    """The first acceptable window at or after ``start``."""
    held_out = split.validation[workload]
    for begin in range(start, len(held_out) - length):
        before = tokenizer.decode([int(held_out[begin - 1])]) if begin else "\n"
        if not before.endswith("\n") and before:
            continue
        window = held_out[begin : begin + length]
        if (window == SEPARATOR_ID).any():
            continue
        tokens = window.tolist()
        if tokenizer.encode(tokenizer.decode(tokens)).ids != tokens:
            continue
        if not any(occurs(window, text) for text in split.training.values()):
            return tokens
    raise ValueError(f"no usable {length}-token prompt in {workload} after token {start}")


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
