"""Single-thread worker processes that average their gradients after every step."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from torch import nn


def run_ranks(work: Callable[..., None], ranks: int, *arguments: Any) -> None:
    """Call ``work(rank, ranks, *arguments)`` in ``ranks`` processes with one thread each.

    A single rank runs in the calling process, with one thread.
    """
    if ranks < 1:
        raise ValueError(f"ranks must be at least 1, got {ranks}")
    if ranks == 1:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            work(0, 1, *arguments)
        finally:
            torch.set_num_threads(threads)
        return
    # Two spinning thread pools on the same cores slow each other down by an order of magnitude.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with tempfile.TemporaryDirectory() as folder:
        meeting = str(Path(folder) / "meeting")
        multiprocessing.spawn(start_rank, (work, ranks, meeting, arguments), nprocs=ranks)


def start_rank(
    rank: int, work: Callable[..., None], ranks: int, meeting: str, arguments: tuple[Any, ...]
) -> None:
    """Entry of one process: join the group, work, leave."""
    # Linux may share the processor by session; ranks in one session would each get a part of it.
    os.setsid()
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks
    )
    try:
        work(rank, ranks, *arguments)
    finally:
        distributed.destroy_process_group()


class GradientAverage:
    """Averages gradients and a few scalars over all ranks in one message per step."""

    def __init__(self, network: nn.Module, scalars: int, ranks: int) -> None:
        self.parameters = list(network.parameters())
        self.ranks = ranks
        self.size = sum(parameter.numel() for parameter in self.parameters)
        self.message = torch.zeros(self.size + scalars)

    def __call__(self, scalars: torch.Tensor) -> torch.Tensor:
        """Replace every gradient by its mean; returns the mean of ``scalars`` (float[n])."""
        if self.ranks == 1:
            return scalars
        gradients = [parameter.grad.reshape(-1) for parameter in self.parameters]
        torch.cat(gradients, out=self.message[: self.size])
        self.message[self.size :] = scalars
        distributed.all_reduce(self.message)
        self.message /= self.ranks
        start = 0
        for parameter in self.parameters:
            end = start + parameter.numel()
            parameter.grad.copy_(self.message[start:end].view_as(parameter))
            start = end
        return self.message[self.size :].clone()
