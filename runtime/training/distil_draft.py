"""Distils the dense draft on the target's full distributions."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from runtime.training.batches import batch_generator, text_batch
from runtime.training.checkpoint import load_checkpoint, save_checkpoint
from runtime.training.network import Network, initialise
from runtime.training.optimiser import apply_step, build_optimiser
from runtime.training.ranks import GradientAverage
from runtime.training.recipe import WORKLOADS, DraftRecipe, Recipe
from runtime.training.sample_target import read_samples
from runtime.training.token_store import read_splits

REPORT_STEPS = 20


def distil_draft(
    rank: int,
    ranks: int,
    recipe: Recipe,
    tokens_dir: Path,
    samples_dir: Path,
    target_checkpoint: Path,
    checkpoint: Path,
    report: Callable[[str], None],
) -> None:
    """Run all steps of ``recipe.draft`` on this rank; rank 0 writes ``checkpoint``."""
    plan = recipe.draft
    target = Network(recipe.target_shape).requires_grad_(False)
    load_checkpoint(target_checkpoint, target)
    draft = Network(plan.shape)
    initialise(draft, plan.seed)
    inherit(draft, target, plan.source_layers)
    optimiser = build_optimiser(draft, plan.weight_decay)
    average = GradientAverage(draft, 3, ranks)
    first = load_checkpoint(checkpoint, draft, optimiser) if checkpoint.exists() else 0
    splits = read_splits(tokens_dir)
    texts = [splits.training[workload] for workload in WORKLOADS]
    samples = read_samples(samples_dir)
    began = time.perf_counter()
    for step in range(first, plan.schedule.steps):
        source = batch_generator(plan.seed, step, rank)
        batch = distillation_batch(plan, texts, samples, source)
        with torch.no_grad():
            wanted = target(batch)
        divergence, distance, agreement = compare(draft(batch), wanted, plan.temperature, source)
        (divergence + plan.distance_weight * distance).backward()
        means = average(torch.stack((divergence, distance, agreement)).detach())
        apply_step(optimiser, draft, plan.schedule.rate(step))
        done = step + 1
        if rank == 0 and (done % REPORT_STEPS == 0 or done == plan.schedule.steps):
            pace = (time.perf_counter() - began) / (done - first)
            report(
                f"draft {done}/{plan.schedule.steps} divergence {means[0]:.3f} "
                f"distance {means[1]:.3f} keyed agreement {means[2]:.3f} {pace:.3f} s/step"
            )
        if rank == 0 and done % recipe.checkpoint_steps == 0:
            save_checkpoint(checkpoint, draft, optimiser, done)
    if rank == 0 and first < plan.schedule.steps:
        save_checkpoint(checkpoint, draft, optimiser, plan.schedule.steps)


def inherit(draft: Network, target: Network, source_layers: tuple[int, ...]) -> None:
    """Start embeddings, attention and norms of the draft from layers of the target."""
    if draft.shape.hidden != target.shape.hidden:
        raise ValueError(
            f"draft width {draft.shape.hidden} differs from target width {target.shape.hidden}"
        )
    draft.model.embed_tokens.load_state_dict(target.model.embed_tokens.state_dict())
    draft.model.norm.load_state_dict(target.model.norm.state_dict())
    for layer, number in zip(draft.model.layers, source_layers, strict=True):
        parent = target.model.layers[number]
        for name in ("self_attn", "input_layernorm", "post_attention_layernorm"):
            getattr(layer, name).load_state_dict(getattr(parent, name).state_dict())


def distillation_batch(
    plan: DraftRecipe,
    texts: list[np.ndarray],
    samples: np.ndarray,
    source: np.random.Generator,
) -> torch.Tensor:
    """int64[sequences, tokens]: some written by the target, the rest real text."""
    drawn = source.integers(len(samples), size=plan.sampled_per_rank)
    rows = samples[drawn, : plan.sequence_tokens]
    real = text_batch(
        texts, plan.sequences_per_rank - plan.sampled_per_rank, plan.sequence_tokens - 1, source
    )
    return torch.cat((torch.from_numpy(rows.astype(np.int64)), real))


def compare(
    draft_logits: torch.Tensor,
    target_logits: torch.Tensor,
    temperature: float,
    source: np.random.Generator,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(Kullback-Leibler divergence, total variation distance, keyed agreement), batch means.

    Both logits are float[B, T, V]; the distributions are compared at ``temperature``. Keyed
    agreement is the share of positions where both pick the same token under shared noise.
    """
    wanted = (target_logits / temperature).log_softmax(-1)
    given = (draft_logits / temperature).log_softmax(-1)
    chances = wanted.exp()
    divergence = (chances * (wanted - given)).sum(-1).mean()
    distance = (chances - given.exp()).abs().sum(-1).mean() / 2
    generator = torch.Generator().manual_seed(int(source.integers(2**62)))
    noise = -torch.empty_like(wanted).exponential_(generator=generator).log()
    with torch.no_grad():
        agreement = ((wanted + noise).argmax(-1) == (given + noise).argmax(-1)).float().mean()
    return divergence, distance, agreement
