"""Measures the exported pair on held-out text and prompts; the model card shows these numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional

from runtime.training import routing_statistics
from runtime.training.acceptance import (
    DraftCounts,
    count_rounds,
    draft_matches,
    total_counts,
    write_text,
)
from runtime.training.export import load_exported
from runtime.training.keyed_noise import gumbel_block
from runtime.training.network import Network
from runtime.training.prompts import read_prompts
from runtime.training.recipe import WORKLOADS, EvaluationRecipe
from runtime.training.token_store import read_splits

LOSS_WINDOW = 256
LOSS_WINDOWS = 40


def evaluate_pair(
    pair_dir: Path, prompts_dir: Path, tokens_dir: Path, plan: EvaluationRecipe
) -> dict[str, Any]:
    """All card numbers as plain JSON data; losses are nats per token."""
    target, draft = load_exported(pair_dir / "target"), load_exported(pair_dir / "draft")
    held_out = read_splits(tokens_dir).validation
    workloads: dict[str, Any] = {}
    routing: list[np.ndarray] = []
    sampled: list[DraftCounts] = []
    greedy: list[DraftCounts] = []
    for number, workload in enumerate(WORKLOADS):
        prompts = read_prompts(prompts_dir, workload)[: plan.prompts_per_workload]
        tokens = torch.tensor([prompt.tokens for prompt in prompts])
        first = number * len(prompts)
        noise = gumbel_block(
            plan.seed,
            range(first, first + len(prompts)),
            range(plan.new_tokens),
            target.shape.vocabulary,
        )
        text = write_text(target, tokens, noise, plan.temperature)
        sampled.append(count(draft, text, noise, plan, plan.temperature))
        plain = write_text(target, tokens, noise, 0.0)
        greedy.append(count(draft, plain, noise, plan, 0.0))
        routing.append(routing_statistics.record_routing(target, text, plan.new_tokens))
        workloads[workload] = {
            "target_loss": validation_loss(target, held_out[workload]),
            "draft_loss": validation_loss(draft, held_out[workload]),
            "keyed": summary(sampled[-1]),
            "greedy": summary(greedy[-1]),
            "routing": routing_summary(routing[-1], target, plan),
        }
    together = np.concatenate(routing)
    return {
        "workloads": workloads,
        "mean": {
            "target_loss": float(np.mean([w["target_loss"] for w in workloads.values()])),
            "draft_loss": float(np.mean([w["draft_loss"] for w in workloads.values()])),
            "keyed": summary(total_counts(sampled)),
            "greedy": summary(total_counts(greedy)),
            "routing": routing_summary(together, target, plan),
            "entropy_per_layer": routing_statistics.entropy(together, target.shape.experts),
        },
        "target_parameters": parameters(target),
        "draft_parameters": parameters(draft),
        "pair_bytes": sum(p.stat().st_size for p in sorted(pair_dir.glob("*/*.safetensors"))),
    }


def count(
    draft: Network,
    text: torch.Tensor,
    noise: torch.Tensor,
    plan: EvaluationRecipe,
    temperature: float,
) -> DraftCounts:
    """Verify rounds of the draft on the target's ``text``."""
    return count_rounds(draft_matches(draft, text, noise, temperature), plan.draft_length)


@torch.inference_mode()
def validation_loss(network: Network, held_out: np.ndarray) -> float:
    """Mean cross entropy in nats per token over evenly spread windows of uint16 text."""
    window = min(LOSS_WINDOW, len(held_out) - 1)
    starts = np.linspace(0, len(held_out) - window - 1, LOSS_WINDOWS).astype(int)
    losses = []
    for start in starts.tolist():
        tokens = torch.from_numpy(held_out[start : start + window + 1].astype(np.int64))
        logits = network(tokens[None, :-1])[0]
        losses.append(functional.cross_entropy(logits, tokens[1:]).item())
    return float(np.mean(losses))


def summary(counts: DraftCounts) -> dict[str, float]:
    """Rates of one set of rounds."""
    return {
        "acceptance": counts.acceptance,
        "accepted_per_proposed": counts.accepted_per_proposed,
        "tokens_per_pass": counts.tokens_per_pass,
        "rounds": counts.rounds,
    }


def routing_summary(
    routing: np.ndarray, target: Network, plan: EvaluationRecipe
) -> dict[str, float]:
    """Locality of uint8[B, T, L, k] routing and of the same tokens in shuffled order."""
    experts = target.shape.experts
    capacity = max(round(plan.resident_share * experts), routing.shape[-1])
    shuffled = routing_statistics.shuffled_tokens(routing, plan.seed)
    window = plan.draft_length + 1
    return {
        "reuse": routing_statistics.reuse(routing),
        "reuse_shuffled": routing_statistics.reuse(shuffled),
        "reuse_by_chance": routing.shape[-1] / experts,
        "resident_experts": capacity,
        "lru": routing_statistics.lru_hit_rate(routing, capacity),
        "lru_shuffled": routing_statistics.lru_hit_rate(shuffled, capacity),
        "distinct_per_window": routing_statistics.distinct_per_window(routing, window),
    }


def parameters(network: Network) -> int:
    """Number of weights, tied ones once."""
    return sum(parameter.numel() for parameter in network.parameters())
