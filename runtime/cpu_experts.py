"""Cold experts: computed by one worker thread from the host arena, in the order given."""

from collections.abc import Sequence

import torch

from runtime.expert_math import Gating, expert_rows
from runtime.host_arena import HostArena
from runtime.pace import Pace
from runtime.row_groups import RowGroup
from runtime.worker import Job, Worker


class CpuExperts:
    """One thread, never all cores: copies and the driver need the others."""

    def __init__(self, arena: HostArena, gating: Gating, pace: Pace) -> None:
        self._arena, self._gating, self._pace = arena, gating, pace
        self._worker = Worker("cpu-experts")

    def submit(
        self,
        hidden: torch.Tensor,
        experts: Sequence[int],
        groups: Sequence[RowGroup],
        since_ns: int,
    ) -> Job:
        """Queue experts (flat keys) on their rows of `hidden` (host memory, [rows, H]), decided at
        `since_ns`.

        The job's result is [n, H], the groups one after the other, in new memory: nobody can still
        be reading an older result there.
        """

        def compute() -> torch.Tensor:
            arena, results, begin = self._arena, [], self._pace.cpu_begin(since_ns)
            for expert, group in zip(experts, groups, strict=True):
                weights = arena.weights(expert)
                results.append(expert_rows(hidden[group.rows], weights, self._gating))
            self._pace.cpu_experts(begin, [len(group.rows) for group in groups])
            return torch.cat(results)

        return self._worker.submit(compute)

    def stop(self) -> None:
        """End the thread."""
        self._worker.stop()
