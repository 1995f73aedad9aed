"""cost_table: what policies and engines may know of time, from profiles.

Every entry is rounded up once to whole ns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from policies.costs import CostTable
from policies.errors import UserError
from simulator.draft_profile import DraftProfile
from simulator.hardware import DecisionTimes, HardwareProfile
from simulator.model_profile import ModelProfile
from simulator.profiles import LONGEST_NS, nanoseconds
from traces.measured_times import MeasuredTimes

CONTEXT_STEP = 1024


def cost_table(
    hardware: HardwareProfile,
    model: ModelProfile,
    draft: DraftProfile,
    rows_max: int,
    dtype: str | None = None,
    trace_layers: int | None = None,
    decision: DecisionTimes | None = None,
) -> CostTable:
    """Times of `model` in `dtype` on `hardware`, for passes of up to `rows_max` rows.

    `trace_layers`: routed layers of the trace that stands for the model; per-pass costs (draft
    step, head) are divided by model layers / trace layers. `decision`: measured times of the
    policy, instead of the profile's. Times that were measured with experts of this very size count
    instead of the profile's rates.
    """
    if rows_max < 1:
        raise UserError(f"rows_max: {rows_max} rows, must be at least 1")
    layers = model.moe_layers if trace_layers is None else trace_layers
    if layers < 1:
        raise UserError(f"trace_layers: {layers} layers, must be at least 1")
    measured = hardware.measured
    if measured is not None and measured.is_of(
        model.hidden, model.expert_width, model.bytes_of_expert(dtype)
    ):
        table = _measured(measured, model, draft, rows_max, layers, decision)
    else:
        table = _from_rates(hardware, model, draft, rows_max, dtype, layers, decision)
    _refuse_endless(table)
    return table


def _from_rates(
    hardware: HardwareProfile,
    model: ModelProfile,
    draft: DraftProfile,
    rows_max: int,
    dtype: str | None,
    layers: int,
    decision: DecisionTimes | None,
) -> CostTable:
    """The table of the profile's rates."""
    gpu, cpu, handover, needs = hardware.gpu, hardware.cpu, hardware.handover, hardware.needs
    times = hardware.decision if decision is None else decision
    expert_bytes = model.bytes_of_expert(dtype)
    expert_flops = 2 * 3 * model.hidden * model.expert_width
    dense_rate = gpu.bytes_per_second * gpu.dense_efficiency
    context_bytes = CONTEXT_STEP * model.kv_bytes_per_token // model.layers
    table = CostTable(
        cpu_ns=_by_tokens(
            rows_max, cpu.expert_fixed_ns, expert_bytes, cpu.bytes_per_second, expert_flops,
            cpu.flops,
        ),
        gpu_ns=_by_tokens(
            rows_max, gpu.expert_launch_ns, expert_bytes,
            gpu.bytes_per_second * gpu.expert_efficiency, expert_flops, gpu.flops,
        ),
        dense_ns=_by_tokens(
            rows_max, gpu.layer_launch_ns, model.layer_bytes, dense_rate,
            2 * (model.layer_bytes // model.dense_parameter_bytes), gpu.flops,
        ),
        context_ns_per_1024=nanoseconds(context_bytes, dense_rate),
        router_ns=handover.router_ns,
        d2h_ns=handover.d2h_ns,
        dispatch_ns=handover.dispatch_ns,
        return_ns=handover.return_ns,
        copy_latency_ns=hardware.link.latency_ns,
        copy_ns=max(1, nanoseconds(expert_bytes, hardware.link.bytes_per_second)),
        contention=cpu.contention,
        draft_step_ns=_per_pass(
            draft.layers * gpu.layer_launch_ns, draft.step_bytes, dense_rate, layers, model
        ),
        pass_ns=_per_pass(
            (model.layers - model.moe_layers) * gpu.layer_launch_ns, model.pass_bytes, dense_rate,
            layers, model,
        ),
        decision_layer_ns=times.layer_ns,
        decision_leave_ns=times.leave_ns,
        decision_draft_ns=times.draft_ns,
        needs_ns=np.array(
            [
                needs.router_mass_ns, needs.next_layer_1_ns, needs.next_layer_2_ns,
                needs.next_layer_3_ns, needs.draft_tokens_ns,
            ],
            np.int64,
        ),
        expert_bytes=expert_bytes,
    )  # fmt: skip
    table.validate()
    return table


def _refuse_endless(table: CostTable) -> None:
    """UserError for an operation beyond LONGEST_NS: sums of such times would leave 64 bits."""
    for name, value in table._asdict().items():
        longest = int(np.max(value)) if "_ns" in name else 0
        if longest > LONGEST_NS:
            raise UserError(
                f"{name}: {longest} ns for one operation, at most {LONGEST_NS} are possible; lower "
                "the times of the hardware profile or the sizes of the model"
            )


def _measured(
    measured: MeasuredTimes,
    model: ModelProfile,
    draft: DraftProfile,
    rows_max: int,
    trace_layers: int,
    decision: DecisionTimes | None,
) -> CostTable:
    """The calibrated table, with per-pass costs for the trace's layers."""
    table = measured.cost_table(rows_max, draft=draft.step_bytes > 0)
    table = table._replace(
        draft_step_ns=-(-table.draft_step_ns * trace_layers // model.moe_layers),
        pass_ns=-(-table.pass_ns * trace_layers // model.moe_layers),
    )
    if decision is None:
        return table
    return table._replace(
        router_ns=measured.held_up_ns(decision.leave_ns),
        decision_layer_ns=decision.layer_ns,
        decision_leave_ns=decision.leave_ns,
        decision_draft_ns=decision.draft_ns,
    )


def _by_tokens(
    rows: int,
    fixed_ns: int,
    size: int,
    bytes_per_second: float,
    flops: int,
    flops_per_second: float,
) -> npt.NDArray[np.int64]:
    """int64 [rows + 1]: reading the weights takes as long for one token as for many, until
    arithmetic takes longer."""
    reading = nanoseconds(size, bytes_per_second)
    times = [
        fixed_ns + max(reading, nanoseconds(count * flops, flops_per_second))
        for count in range(1, rows + 1)
    ]
    return np.array([0, *times], np.int64)


def _per_pass(
    fixed_ns: int, size: int, bytes_per_second: float, trace_layers: int, model: ModelProfile
) -> int:
    whole = fixed_ns + nanoseconds(size, bytes_per_second)
    return -(-whole * trace_layers // model.moe_layers)
