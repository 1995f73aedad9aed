"""Computes one MoE layer on its lanes, then adds the contributions in a fixed order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from runtime.cpu_experts import CpuExperts
from runtime.device import COMPUTE, Device
from runtime.expert_math import Activation, combine, expert_rows
from runtime.layer_work import Held, LayerWork
from runtime.message_ring import HostRing, send_to_device
from runtime.pace import Pace
from runtime.row_groups import RowGroup
from runtime.slots import SlotPool, slot_name
from runtime.transfers import Transfers

RESULTS = 2
CAPACITY = 64 * 1024


@dataclass(frozen=True)
class LaneTimes:
    """Begin, end and computing time of both lanes in ns; begin = end where a lane had no work."""

    gpu_begin_ns: int
    gpu_end_ns: int
    gpu_busy_ns: int
    cpu_begin_ns: int
    cpu_end_ns: int
    join_ns: int


class LayerExecutor:
    """Executes the work of layers, one after the other."""

    def __init__(
        self,
        device: Device,
        pool: SlotPool,
        transfers: Transfers,
        cpu: CpuExperts,
        activation: Activation,
        pace: Pace,
    ) -> None:
        self._device, self._pool, self._transfers, self._cpu = device, pool, transfers, cpu
        self._activation, self._pace = activation, pace
        self._compute = device.stream(COMPUTE)
        self._results = HostRing(device, RESULTS, CAPACITY, "CPU result")

    def execute(
        self,
        work: LayerWork,
        hidden: torch.Tensor,
        hidden_on_host: torch.Tensor,
        weights: torch.Tensor,
        groups: Mapping[int, RowGroup],
        since_ns: int,
    ) -> tuple[torch.Tensor, LaneTimes]:
        """hidden [rows, H] and router weights [rows, k] on the device -> output [rows, H], times.

        A lane without work is reported at `since_ns`.
        """
        device, compute = self._device, self._compute
        base = work.layer * self._pool.layout.experts
        job = None
        if work.cold:
            keys = [base + expert for expert in work.cold]
            job = self._cpu.submit(hidden_on_host, keys, [groups[e] for e in work.cold])
        rows, top_k = weights.shape
        contributions = hidden.new_empty(rows, top_k, hidden.shape[1])
        lane = []
        if work.residents:
            lane.append(self._compute_held(work.residents, hidden, contributions, groups))
        for held in work.arrivals:
            device.wait(compute, self._transfers.event_of(held.slot, base + held.expert))
            lane.append(self._compute_held((held,), hidden, contributions, groups))
        if job is not None:
            self._place(job.result(), work.cold, contributions, groups)
        output = torch.empty_like(hidden)

        def add() -> None:
            output.copy_(combine(contributions * weights.unsqueeze(-1).to(hidden.dtype)))

        device.run(compute, add)
        device.join(compute)
        join = device.clock_ns()
        begins = [device.begin_ns(event) for event in lane] or [since_ns]
        ends = [device.end_ns(event) for event in lane] or [since_ns]
        busy = sum(end - begin for begin, end in zip(begins, ends, strict=True))
        cpu_begin, cpu_end = (since_ns, since_ns) if job is None else (job.begin_ns, job.end_ns)
        return output, LaneTimes(begins[0], ends[-1], busy, cpu_begin, cpu_end, join)

    def _compute_held(
        self,
        experts: tuple[Held, ...],
        hidden: torch.Tensor,
        contributions: torch.Tensor,
        groups: Mapping[int, RowGroup],
    ) -> Any:
        """Queue experts in slots; the slots may be overwritten only after that."""
        pool, activation = self._pool, self._activation
        local = {held.expert: groups[held.expert].to(hidden.device) for held in experts}

        def compute() -> None:
            begin = self._device.clock_ns()
            for held in experts:
                group = local[held.expert]
                contributions[group.rows, group.places] = expert_rows(
                    hidden[group.rows], pool.gate_up(held.slot), pool.down(held.slot), activation
                )
                begin = self._pace.gpu_expert(begin, len(group.rows))

        event = self._device.run(
            self._compute, compute, reads=[slot_name(held.slot) for held in experts]
        )
        for held in experts:
            self._transfers.read(held.slot, event)
        return event

    def _place(
        self,
        results: torch.Tensor,
        cold: tuple[int, ...],
        contributions: torch.Tensor,
        groups: Mapping[int, RowGroup],
    ) -> None:
        """Queue the CPU's results [n, H] into the contributions."""
        arrived = contributions.new_empty(results.shape)
        send_to_device(self._device, self._results, results, arrived, self._compute)
        rows = torch.cat([groups[expert].rows for expert in cold]).to(arrived.device)
        places = torch.cat([groups[expert].places for expert in cold]).to(arrived.device)

        def place() -> None:
            contributions[rows, places] = arrived

        self._device.run(self._compute, place)
