"""Tokenised training and validation splits, one uint16 array per workload and split."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from runtime.training.recipe import WORKLOADS
from runtime.training.tokenizer import SEPARATOR_ID

SMALLEST_VALIDATION = 8


@dataclass(frozen=True)
class Split:
    """Token ids per workload, ``uint16[n]``; every document starts with the separator."""

    training: dict[str, np.ndarray]
    validation: dict[str, np.ndarray]


def write_splits(
    folder: Path, corpora: dict[str, list[str]], tokenizer: Tokenizer, validation_share: float
) -> None:
    """Encode; the first documents of each (already shuffled) corpus become validation text."""
    folder.mkdir(parents=True, exist_ok=True)
    for workload, documents in corpora.items():
        held_out = max(SMALLEST_VALIDATION, round(len(documents) * validation_share))
        held_out = min(held_out, len(documents) // 2)
        parts = {"validation": documents[:held_out], "training": documents[held_out:]}
        for name, texts in parts.items():
            ids: list[int] = []
            for encoding in tokenizer.encode_batch(texts):
                ids.append(SEPARATOR_ID)
                ids.extend(encoding.ids)
            np.save(folder / f"{workload}.{name}.npy", np.array(ids, dtype=np.uint16))


def read_splits(folder: Path) -> Split:
    """The arrays written by ``write_splits``."""

    def load(name: str) -> dict[str, np.ndarray]:
        return {
            workload: np.load(folder / f"{workload}.{name}.npy", allow_pickle=False)
            for workload in WORKLOADS
        }

    return Split(load("training"), load("validation"))
