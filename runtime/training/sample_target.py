"""Lets the trained target continue training prompts; the draft is distilled on this text."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from runtime.training.batches import batch_generator, text_batch
from runtime.training.checkpoint import load_checkpoint
from runtime.training.key_value_cache import KeyValueCache
from runtime.training.network import Network
from runtime.training.recipe import WORKLOADS, Recipe
from runtime.training.token_store import read_splits


def sample_target(
    rank: int,
    ranks: int,
    recipe: Recipe,
    tokens_dir: Path,
    checkpoint: Path,
    out_dir: Path,
    report: Callable[[str], None],
) -> None:
    """Write ``out_dir/<batch>.npy`` (uint16[batch, tokens]); finished batches are skipped."""
    plan = recipe.sampling
    network = Network(recipe.target_shape)
    load_checkpoint(checkpoint, network)
    splits = read_splits(tokens_dir)
    texts = [splits.training[workload] for workload in WORKLOADS]
    out_dir.mkdir(parents=True, exist_ok=True)
    for number in range(rank, plan.batches, ranks):
        path = out_dir / f"{number:04d}.npy"
        if path.exists():
            continue
        source = batch_generator(plan.seed, number, 0)
        prompts = text_batch(texts, plan.batch, plan.prompt_tokens - 1, source)
        written = continue_prompts(network, prompts, plan.sequence_tokens, plan.temperature, source)
        unfinished = path.with_suffix(".part")
        with unfinished.open("wb") as file:
            np.save(file, written.numpy().astype(np.uint16))
        os.replace(unfinished, path)
        report(f"sampling batch {number + 1}/{plan.batches}")


@torch.inference_mode()
def continue_prompts(
    network: Network,
    prompts: torch.Tensor,
    total: int,
    temperature: float,
    source: np.random.Generator,
) -> torch.Tensor:
    """Extend int64[B, P] prompts to int64[B, total] by sampling at ``temperature``."""
    batch, length = prompts.shape
    generator = torch.Generator().manual_seed(int(source.integers(2**62)))
    cache = KeyValueCache(network.shape, batch, total)
    tokens = torch.zeros(batch, total, dtype=torch.long)
    tokens[:, :length] = prompts
    fed = 0
    for position in range(length, total):
        logits = network(tokens[:, fed:position], cache)[:, -1]
        fed = position
        chances = (logits / temperature).softmax(-1)
        tokens[:, position] = torch.multinomial(chances, 1, generator=generator)[:, 0]
    return tokens


def read_samples(folder: Path) -> np.ndarray:
    """All sampled sequences in batch order, uint16[n, tokens]."""
    return np.concatenate(
        [np.load(path, allow_pickle=False) for path in sorted(folder.glob("*.npy"))]
    )
