"""When the lanes of a layer worked: known only once they have."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from runtime.device import Device
from runtime.worker import Job


class LaneTimes(NamedTuple):
    """Begin, end and computing time of both lanes in ns; begin = end where a lane had no work."""

    gpu_begin_ns: int
    gpu_end_ns: int
    gpu_busy_ns: int
    cpu_begin_ns: int
    cpu_end_ns: int
    join_ns: int


class LaneEvents(NamedTuple):
    """`gpu`: ends of the work on experts in slots, in order; `cpu`: the job of the cold ones;
    `join`: end of the layer's sum.
    """

    gpu: Sequence[Any]
    cpu: Job | None
    join: Any

    def times(self, device: Device, since_ns: int) -> LaneTimes:
        """Waits for the join. A lane without work is reported at `since_ns`."""
        device.synchronize(self.join)
        begin = end = since_ns
        busy = 0
        for place, event in enumerate(self.gpu):
            started, end = device.begin_ns(event), device.end_ns(event)
            busy += end - started
            begin = begin if place else started
        cpu = (since_ns, since_ns) if self.cpu is None else (self.cpu.begin_ns, self.cpu.end_ns)
        return LaneTimes(begin, end, busy, *cpu, device.end_ns(self.join))
