"""Trains the mixture-of-experts target on the five workloads."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as functional

from runtime.training.batches import batch_generator, text_batch
from runtime.training.checkpoint import load_checkpoint, save_checkpoint
from runtime.training.locality import balance_loss, locality_loss, locality_weight
from runtime.training.network import Network, initialise
from runtime.training.optimiser import apply_step, build_optimiser
from runtime.training.ranks import GradientAverage
from runtime.training.recipe import WORKLOADS, Recipe
from runtime.training.token_store import read_splits

REPORT_STEPS = 20


def train_target(
    rank: int,
    ranks: int,
    recipe: Recipe,
    tokens_dir: Path,
    checkpoint: Path,
    report: Callable[[str], None],
) -> None:
    """Run all steps of ``recipe.target`` on this rank; rank 0 writes ``checkpoint``."""
    plan = recipe.target
    network = Network(recipe.target_shape)
    initialise(network, plan.seed)
    optimiser = build_optimiser(network, plan.weight_decay)
    average = GradientAverage(network, 3, ranks)
    first = load_checkpoint(checkpoint, network, optimiser) if checkpoint.exists() else 0
    splits = read_splits(tokens_dir)
    texts = [splits.training[workload] for workload in WORKLOADS]
    began = time.perf_counter()
    for step in range(first, plan.schedule.steps):
        source = batch_generator(plan.seed, step, rank)
        batch = text_batch(texts, plan.sequences_per_rank, plan.sequence_tokens, source)
        logits = network(batch[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        blocks = network.expert_blocks()
        balance = torch.stack([balance_loss(block) for block in blocks]).sum()
        locality = torch.stack([locality_loss(block, len(batch)) for block in blocks]).sum()
        total = loss + plan.balance_weight * balance + locality_weight(plan, step) * locality
        total.backward()
        means = average(torch.stack((loss, balance, locality)).detach())
        apply_step(optimiser, network, plan.schedule.rate(step))
        done = step + 1
        if rank == 0 and (done % REPORT_STEPS == 0 or done == plan.schedule.steps):
            pace = (time.perf_counter() - began) / (done - first)
            layers = len(blocks)
            report(
                f"target {done}/{plan.schedule.steps} loss {means[0]:.3f} "
                f"balance {means[1] / layers:.3f} locality {means[2] / layers:.3f} "
                f"{pace:.3f} s/step"
            )
        if rank == 0 and done % recipe.checkpoint_steps == 0:
            save_checkpoint(checkpoint, network, optimiser, done)
    if rank == 0 and first < plan.schedule.steps:
        save_checkpoint(checkpoint, network, optimiser, plan.schedule.steps)
