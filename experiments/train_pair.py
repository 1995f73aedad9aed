"""Trains, measures and writes a model pair (``spac train-pair``)."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

from omegaconf import DictConfig

from experiments.values import number, positive
from policies.errors import UserError
from runtime.training.packages import CorpusError
from runtime.training.pipeline import train_pair
from runtime.training.recipe import Recipe, scaled
from runtime.training.stages import RecipeMismatch

LEAST_RANKS = 16  # that are possible on any machine: what is trained depends on their number


def show(message: str) -> None:
    """One progress line with the time of day."""
    print(time.strftime("%H:%M:%S"), message, flush=True)


def run(config: DictConfig) -> int:
    """Train with ``config.out``, ``corpus_dir`` (or null), ``ranks`` and ``scale``.

    ``scale`` 1.0 is the shipped recipe; a smaller one multiplies every step count. Returns the
    process exit code; a missing text or a folder of another recipe is a UserError.
    """
    corpus_dir = Path(config.corpus_dir) if config.corpus_dir else None
    scale = number("scale", config.scale)
    if not 0 < scale < math.inf:
        raise UserError(f"scale={scale}: must be above 0; 1 is the shipped recipe")
    ranks, most = positive("ranks", config.ranks), max(LEAST_RANKS, os.cpu_count() or 1)
    if ranks > most:
        raise UserError(f"ranks={ranks}: each is a process of this machine; at most {most}")
    try:
        pair = train_pair(scaled(Recipe(), scale), Path(config.out), corpus_dir, ranks, show)
    except (CorpusError, RecipeMismatch) as error:
        raise UserError(str(error)) from error
    show(f"finished: {pair}")
    return 0
