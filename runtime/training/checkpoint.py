"""Resumable training state as one safetensors file: weights, AdamW moments and the step."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from runtime.training.network import Network


def save_checkpoint(
    path: Path, network: Network, optimiser: torch.optim.Optimizer | None, step: int
) -> None:
    """Write atomically; ``step`` is the number of finished steps."""
    tensors = {f"weight.{name}": p.detach() for name, p in network.named_parameters()}
    if optimiser is not None:
        for name, parameter in network.named_parameters():
            state = optimiser.state[parameter]
            tensors[f"first.{name}"] = state["exp_avg"]
            tensors[f"second.{name}"] = state["exp_avg_sq"]
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    save_file(tensors, unfinished, metadata={"step": str(step)})
    os.replace(unfinished, path)


def load_checkpoint(
    path: Path, network: Network, optimiser: torch.optim.Optimizer | None = None
) -> int:
    """Restore in place and return the number of finished steps."""
    with safe_open(path, framework="pt") as file, torch.no_grad():
        step = int(file.metadata()["step"])
        for name, parameter in network.named_parameters():
            parameter.copy_(file.get_tensor(f"weight.{name}"))
            if optimiser is not None:
                optimiser.state[parameter] = {
                    "step": torch.tensor(float(step)),
                    "exp_avg": file.get_tensor(f"first.{name}"),
                    "exp_avg_sq": file.get_tensor(f"second.{name}"),
                }
    return step
