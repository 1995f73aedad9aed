"""When the lanes of a layer worked: known only once they have."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runtime.device import Device
from runtime.worker import Job


@dataclass(frozen=True)
class LaneTimes:
    """Begin, end and computing time of both lanes in ns; begin = end where a lane had no work."""

    gpu_begin_ns: int
    gpu_end_ns: int
    gpu_busy_ns: int
    cpu_begin_ns: int
    cpu_end_ns: int
    join_ns: int


@dataclass(frozen=True)
class LaneEvents:
    """`gpu`: ends of the work on experts in slots, in order; `cpu`: the job of the cold ones;
    `join`: end of the layer's sum.
    """

    gpu: Sequence[Any]
    cpu: Job | None
    join: Any

    def times(self, device: Device, since_ns: int) -> LaneTimes:
        """Waits for the join. A lane without work is reported at `since_ns`."""
        device.synchronize(self.join)
        begins = [device.begin_ns(event) for event in self.gpu] or [since_ns]
        ends = [device.end_ns(event) for event in self.gpu] or [since_ns]
        busy = sum(end - begin for begin, end in zip(begins, ends, strict=True))
        cpu = (since_ns, since_ns) if self.cpu is None else (self.cpu.begin_ns, self.cpu.end_ns)
        return LaneTimes(begins[0], ends[-1], busy, *cpu, device.end_ns(self.join))
