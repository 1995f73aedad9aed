"""Computes one MoE layer on its lanes, then adds the contributions in a fixed order."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from runtime.cpu_experts import CpuExperts
from runtime.device import COMPUTE, Device
from runtime.expert_math import combine
from runtime.lane_times import LaneEvents
from runtime.layer_inputs import LayerInputs
from runtime.layer_work import LayerWork
from runtime.message_ring import HostRing, write_to_device
from runtime.pace import Pace
from runtime.slot_kernels import NOWHERE, SlotKernel
from runtime.slots import slot_name
from runtime.transfers import Transfers
from runtime.worker import Job

RING = 4
CAPACITY = 64 * 1024
INDEX = torch.int64  # of choices, row * top_k + place


class Started(NamedTuple):
    """Residents that were queued before the decision: `table` says which, slot by expert."""

    table: Mapping[int, int]
    event: Any


class LayerExecutor:
    """Executes the work of layers, one after the other. Nothing here waits for the device."""

    def __init__(
        self,
        device: Device,
        transfers: Transfers,
        cpu: CpuExperts,
        kernel: SlotKernel,
        experts: int,
        pace: Pace,
    ) -> None:
        self._device, self._transfers, self._cpu = device, transfers, cpu
        self._pace = pace
        self._kernel, self._experts = kernel, experts
        self._compute = device.stream(COMPUTE)
        self._tables = HostRing(device, RING, CAPACITY, "slot table")
        self._on_device, self._rows = torch.empty(0), ()
        self._results = HostRing(device, RING, CAPACITY, "CPU result")

    def start(self, inputs: LayerInputs, table: Mapping[int, int]) -> Started:
        """Queue whatever the router chose among the experts in `table`, whoever that is."""
        (slot_of,) = self._upload([table])
        return Started(table, self._queue(inputs, slot_of, None, ()))

    def chosen(self, started: Started, active: Iterable[int]) -> None:
        """The router chose the experts `active`: those of them in the table are being read."""
        table = started.table
        slots = [table[expert] for expert in active if expert in table]
        self._device.has_read(started.event, map(slot_name, slots))
        self._transfers.read_all(slots, started.event)

    def execute(
        self,
        work: LayerWork,
        inputs: LayerInputs,
        hidden_on_host: torch.Tensor,
        groups: Mapping[int, Sequence[int]],
        since_ns: int,
        started: Started | None = None,
    ) -> tuple[torch.Tensor, LaneEvents]:
        """The layer's output [rows, H] and the events of its lanes; decided at `since_ns`. groups:
        choices by expert.
        """
        device, compute, base = self._device, self._compute, work.layer * self._experts
        job, choices = None, [groups[expert] for expert in work.cold]
        if work.cold:
            keys = [base + expert for expert in work.cold]
            top_k = inputs.experts.shape[1]
            job = self._cpu.submit(hidden_on_host, top_k, keys, choices, since_ns)
        lane = [] if started is None else _checked(started, work, groups)
        parts = [] if started is not None or not work.residents else [work.residents]
        parts += [{held.expert: held.slot} for held in work.arrivals]
        for part, slot_of in zip(parts, self._upload(parts), strict=True):
            if part is not work.residents:
                for expert, slot in part.items():
                    device.wait(compute, self._transfers.event_of(slot, base + expert))
            slots = part.values()
            event = self._queue(inputs, slot_of, list(part), slots)
            self._transfers.read_all(slots, event)
            lane.append(event)
        if job is not None:
            self._place(job, choices, inputs)
        output = torch.empty_like(inputs.hidden)

        def add() -> None:
            scale = inputs.weights.unsqueeze(-1).to(output.dtype)
            combine(inputs.contributions * scale, output)

        join = device.run(compute, add, timed=False)
        device.join(compute)
        return output, LaneEvents(lane, job, join)

    def _queue(
        self,
        inputs: LayerInputs,
        slot_of: torch.Tensor,
        numbers: Sequence[int] | None,
        slots: Iterable[int],
    ) -> Any:
        return self._device.run(
            self._compute,
            lambda: self._kernel.compute(
                inputs.hidden, inputs.experts, slot_of, inputs.contributions, numbers
            ),
            reads=map(slot_name, slots),
        )

    def _upload(self, tables: Sequence[Mapping[int, int]]) -> Sequence[torch.Tensor]:
        """All tables of a step to the device at once: int32 [experts] each."""
        if not tables:
            return ()
        shape = (len(tables), self._experts)

        def write(buffer: torch.Tensor) -> None:
            values = buffer.numpy().view(np.int32).reshape(shape)
            values.fill(NOWHERE)
            for row, table in zip(values, tables, strict=True):
                row[list(table)] = list(table.values())

        if len(tables) > len(self._rows):
            with torch.inference_mode(False):  # it outlives whatever mode this call is made in
                place = self._device.torch_device
                self._on_device = torch.empty(shape, dtype=torch.int32, device=place)
                self._rows = self._on_device.unbind()
        # Written and read on one stream, in order: the same memory serves every step.
        arrived = self._on_device[: len(tables)]
        write_to_device(self._device, self._tables, write, arrived, self._compute)
        return self._rows[: len(tables)]

    def _place(self, job: Job, choices: Sequence[Sequence[int]], inputs: LayerInputs) -> None:
        """Queue the results of the CPU lane, [n, H], into the contributions."""
        numbers = [choice for group in choices for choice in group]
        shape, dtype = (len(numbers), inputs.hidden.shape[1]), inputs.hidden.dtype
        split, size = shape[0] * INDEX.itemsize, shape[0] * shape[1] * dtype.itemsize
        arrived = torch.empty(split + size, dtype=torch.uint8, device=self._device.torch_device)
        index, values = arrived[:split].view(INDEX), arrived[split:].view(dtype).view(shape)

        # One message: an index that comes from ordinary host memory would stop the device. All
        # else is ready before the lane is waited for.
        def write(buffer: torch.Tensor) -> None:
            memory = buffer.numpy()  # numpy keeps the interpreter, which the lane wants too
            memory[:split].view(np.int64)[:] = numbers
            memory[split:] = job.result()
            self._pace.returned(job.end_ns)

        write_to_device(self._device, self._results, write, arrived, self._compute)

        def place() -> None:
            inputs.contributions.flatten(0, 1).index_copy_(0, index, values)

        self._device.run(self._compute, place, timed=False)


def _checked(started: Started, work: LayerWork, groups: Mapping[int, Any]) -> list[Any]:
    """The plan must keep to what runs already; the session sees to that."""
    running = {expert: slot for expert, slot in started.table.items() if expert in groups}
    if work.residents != running:
        raise RuntimeError(f"layer {work.layer}: started early {running}, planned {work.residents}")
    return [started.event] if running else []
