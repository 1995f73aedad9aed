"""Cold experts: computed by one worker thread from the host arena, in the order given."""

from collections.abc import Sequence

import numpy as np
import torch

from runtime.expert_math import Gating, expert_rows
from runtime.host_arena import HostArena
from runtime.pace import Pace
from runtime.worker import Job, Worker


class CpuExperts:
    """One thread, never all cores: copies and the driver need the others."""

    def __init__(self, arena: HostArena, gating: Gating, pace: Pace) -> None:
        self._arena, self._gating, self._pace = arena, gating, pace
        self._worker = Worker("cpu-experts")

    def submit(
        self,
        hidden: torch.Tensor,
        top_k: int,
        experts: Sequence[int],
        choices: Sequence[Sequence[int]],
        since_ns: int,
    ) -> Job:
        """Queue experts (flat keys), decided at `since_ns`, on rows of `hidden` (host memory,
        [rows, H]): each expert on those of its choices, row * top_k + place.

        The job's result are the bytes uint8 [n * H * itemsize] of one row per choice in the order
        given, in new memory: nobody can still be reading an older result there.
        """

        def compute() -> np.ndarray:
            arena, results, begin = self._arena, [], self._pace.cpu_begin(since_ns)
            for expert, chosen in zip(experts, choices, strict=True):
                rows = torch.tensor([choice // top_k for choice in chosen])
                results.append(expert_rows(hidden[rows], arena.weights(expert), self._gating))
            self._pace.cpu_experts(begin, [len(chosen) for chosen in choices])
            return torch.cat(results).view(-1).view(torch.uint8).numpy()

        return self._worker.submit(compute)

    def stop(self) -> None:
        """End the thread."""
        self._worker.stop()
