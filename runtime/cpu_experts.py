"""Cold experts: computed by one worker thread from the host arena, in the order given."""

from collections.abc import Sequence

import torch

from runtime.expert_math import Activation, expert_rows
from runtime.host_arena import HostArena
from runtime.row_groups import RowGroup
from runtime.worker import Job, Worker


class CpuExperts:
    """One thread, never all cores: copies and the driver need the others."""

    def __init__(self, arena: HostArena, activation: Activation) -> None:
        self._arena, self._activation = arena, activation
        self._worker = Worker("cpu-experts")

    def submit(
        self, hidden: torch.Tensor, experts: Sequence[int], groups: Sequence[RowGroup]
    ) -> Job:
        """Queue experts (flat keys) on their rows of `hidden` (host memory, [rows, H]).

        The job's result is [n, H], the groups one after the other, in new memory: nobody can still
        be reading an older result there.
        """

        def compute() -> torch.Tensor:
            return torch.cat(
                [
                    expert_rows(
                        hidden[group.rows],
                        self._arena.gate_up(expert),
                        self._arena.down(expert),
                        self._activation,
                    )
                    for expert, group in zip(experts, groups, strict=True)
                ]
            )

        return self._worker.submit(compute)

    def stop(self) -> None:
        """End the thread."""
        self._worker.stop()
