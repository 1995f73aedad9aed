"""How much of the routing locality the locality loss adds: two short targets, with and without.

Both see the same batches on one rank; they are measured like the shipped target and not shipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from runtime.training import routing_statistics
from runtime.training.acceptance import write_text
from runtime.training.checkpoint import load_checkpoint
from runtime.training.evaluate import routing_summary, validation_loss
from runtime.training.keyed_noise import gumbel_block
from runtime.training.network import Network
from runtime.training.prompts import read_prompts
from runtime.training.recipe import WORKLOADS, Recipe, scaled
from runtime.training.token_store import read_splits
from runtime.training.train_target import train_target

VARIANTS = ("without", "with")


def variant_recipe(recipe: Recipe, variant: str) -> Recipe:
    """The target's recipe at the ablation's scale, with or without the locality loss."""
    short = scaled(recipe, recipe.ablation.scale)
    if variant == "with":
        return short
    return replace(short, target=replace(short.target, locality_weight=0.0))


def train_variants(
    rank: int,
    ranks: int,
    recipe: Recipe,
    tokens_dir: Path,
    folder: Path,
    report: Callable[[str], None],
) -> None:
    """Train this rank's share of the two variants, each on its own."""

    def report_variant(message: str) -> None:
        report(f"{variant} locality loss: {message}")

    for variant in VARIANTS[rank::ranks]:
        checkpoint = folder / f"{variant}.safetensors"
        train_target(0, 1, variant_recipe(recipe, variant), tokens_dir, checkpoint, report_variant)


def measure_variants(
    recipe: Recipe, tokens_dir: Path, prompts_dir: Path, folder: Path
) -> dict[str, Any]:
    """Loss and routing of both variants over the first prompts of every workload."""
    held_out = read_splits(tokens_dir).validation
    plan, count = recipe.evaluation, recipe.ablation.prompts_per_workload
    prompts = [
        prompt.tokens
        for workload in WORKLOADS
        for prompt in read_prompts(prompts_dir, workload)[:count]
    ]
    noise = gumbel_block(
        plan.seed, range(len(prompts)), range(plan.new_tokens), recipe.target_shape.vocabulary
    )
    measured: dict[str, Any] = {
        "steps": scaled(recipe, recipe.ablation.scale).target.schedule.steps
    }
    for variant in VARIANTS:
        network = Network(recipe.target_shape).requires_grad_(False)
        load_checkpoint(folder / f"{variant}.safetensors", network)
        text = write_text(network, torch.tensor(prompts), noise, plan.temperature)
        routing = routing_statistics.record_routing(network, text, plan.new_tokens)
        losses = [validation_loss(network, held_out[workload]) for workload in WORKLOADS]
        measured[variant] = {
            "loss": float(np.mean(losses)),
            "routing": routing_summary(routing, network, plan),
        }
    return measured
