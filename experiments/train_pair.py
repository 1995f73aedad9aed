"""Trains, measures and writes a model pair (``spac train-pair``)."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from omegaconf import DictConfig

from runtime.training.packages import CorpusError
from runtime.training.pipeline import train_pair
from runtime.training.recipe import Recipe, scaled
from runtime.training.stages import RecipeMismatch


def show(message: str) -> None:
    """One progress line with the time of day."""
    print(time.strftime("%H:%M:%S"), message, flush=True)


def run(config: DictConfig) -> int:
    """Train with ``config.out``, ``corpus_dir`` (or null), ``ranks`` and ``scale``.

    ``scale`` 1.0 is the shipped recipe; a smaller one multiplies every step count. Returns the
    process exit code; a missing text or a folder of another recipe is reported in one line.
    """
    corpus_dir = Path(config.corpus_dir) if config.corpus_dir else None
    recipe = scaled(Recipe(), float(config.scale))
    try:
        pair = train_pair(recipe, Path(config.out), corpus_dir, int(config.ranks), show)
    except (CorpusError, RecipeMismatch) as error:
        print(f"train-pair: {error}", file=sys.stderr)
        return 1
    show(f"finished: {pair}")
    return 0
