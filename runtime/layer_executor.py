"""Computes one MoE layer on its lanes, then adds the contributions in a fixed order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from runtime.cpu_experts import CpuExperts
from runtime.device import COMPUTE, Device
from runtime.expert_math import combine
from runtime.lane_times import LaneEvents
from runtime.layer_inputs import LayerInputs
from runtime.layer_work import Held, LayerWork
from runtime.message_ring import HostRing, send_to_device
from runtime.pace import Pace
from runtime.row_groups import RowGroup
from runtime.slot_kernels import NOWHERE, SlotKernel
from runtime.slots import slot_name
from runtime.transfers import Transfers
from runtime.worker import Job

RING = 4
CAPACITY = 64 * 1024


@dataclass(frozen=True)
class Started:
    """Residents that were queued before the decision: `table` int32 [experts] says which."""

    table: np.ndarray
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
        self._results = HostRing(device, RING, CAPACITY, "CPU result")

    def start(self, inputs: LayerInputs, table: np.ndarray) -> Started:
        """Queue whatever the router chose among the experts in `table`, whoever that is."""
        (slot_of,) = self._upload([table])
        return Started(table, self._queue(inputs, slot_of, None, ()))

    def chosen(self, started: Started, active: Iterable[int]) -> None:
        """The router chose the experts `active`: those of them in the table are being read."""
        slots = [int(started.table[expert]) for expert in active]
        slots = [slot for slot in slots if slot != NOWHERE]
        self._device.has_read(started.event, [slot_name(slot) for slot in slots])
        for slot in slots:
            self._transfers.read(slot, started.event)

    def execute(
        self,
        work: LayerWork,
        inputs: LayerInputs,
        hidden_on_host: torch.Tensor,
        groups: Mapping[int, RowGroup],
        since_ns: int,
        started: Started | None = None,
    ) -> tuple[torch.Tensor, LaneEvents]:
        """The layer's output [rows, H] and the events of its lanes; decided at `since_ns`."""
        device, compute, base = self._device, self._compute, work.layer * self._experts
        job = None
        if work.cold:
            keys = [base + expert for expert in work.cold]
            of_each = [groups[expert] for expert in work.cold]
            job = self._cpu.submit(hidden_on_host, keys, of_each, since_ns)
        lane = [] if started is None else _checked(started, work, groups)
        parts = [] if started is not None or not work.residents else [work.residents]
        parts += [(held,) for held in work.arrivals]
        tables = self._upload([self._table(part) for part in parts])
        for part, slot_of in zip(parts, tables, strict=True):
            for held in part if part is not work.residents else ():
                device.wait(compute, self._transfers.event_of(held.slot, base + held.expert))
            numbers = [held.expert for held in part]
            event = self._queue(inputs, slot_of, numbers, [held.slot for held in part])
            for held in part:
                self._transfers.read(held.slot, event)
            lane.append(event)
        if job is not None:
            self._place(job, [groups[expert] for expert in work.cold], inputs)
        output = torch.empty_like(inputs.hidden)

        def add() -> None:
            scale = inputs.weights.unsqueeze(-1).to(output.dtype)
            output.copy_(combine(inputs.contributions * scale))

        join = device.run(compute, add)
        device.join(compute)
        return output, LaneEvents(lane, job, join)

    def _queue(
        self,
        inputs: LayerInputs,
        slot_of: torch.Tensor,
        numbers: Sequence[int] | None,
        slots: Sequence[int],
    ) -> Any:
        return self._device.run(
            self._compute,
            lambda: self._kernel.compute(
                inputs.hidden, inputs.experts, slot_of, inputs.contributions, numbers
            ),
            reads=[slot_name(slot) for slot in slots],
        )

    def _table(self, part: Sequence[Held]) -> np.ndarray:
        table = np.full(self._experts, NOWHERE, np.int32)
        for held in part:
            table[held.expert] = held.slot
        return table

    def _upload(self, tables: Sequence[np.ndarray]) -> Sequence[torch.Tensor]:
        """All tables of a step to the device at once: int32 [n, experts]."""
        if not tables:
            return ()
        values = torch.from_numpy(np.stack(tables))
        arrived = torch.empty_like(values, device=self._device.torch_device)
        send_to_device(self._device, self._tables, values, arrived, self._compute)
        return arrived.unbind()

    def _place(self, job: Job, groups: Sequence[RowGroup], inputs: LayerInputs) -> None:
        """Queue the results of the CPU lane, [n, H], into the contributions."""
        results: torch.Tensor = job.result()
        self._pace.returned(job.end_ns)
        where = torch.stack(
            [torch.cat([group.rows for group in groups]), torch.cat([g.places for g in groups])]
        )
        # One message: an index that comes from ordinary host memory would stop the device.
        payload = torch.cat([_as_bytes(where), _as_bytes(results)])
        arrived = torch.empty_like(payload, device=self._device.torch_device)
        send_to_device(self._device, self._results, payload, arrived, self._compute)
        indices, values = arrived.split([where.nbytes, results.nbytes])
        rows, places = indices.view(torch.int64).view(2, -1).unbind()
        values = values.view(results.dtype).view(results.shape)

        def place() -> None:
            inputs.contributions[rows, places] = values

        self._device.run(self._compute, place)


def _as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)


def _checked(started: Started, work: LayerWork, groups: Mapping[int, RowGroup]) -> list[Any]:
    """The plan must keep to what runs already; the session sees to that."""
    planned = {(held.expert, held.slot) for held in work.residents}
    running = {(e, int(started.table[e])) for e in groups if started.table[e] != NOWHERE}
    if planned != running:
        raise RuntimeError(
            f"layer {work.layer}: started early {sorted(running)}, planned {sorted(planned)}"
        )
    return [started.event] if running else []
