"""EngineCore: everything of an engine below the model: slots, copies, session, lanes, log.

What reads the layers' inputs and says which tokens a pass has lives above: `OffloadedEngine`
decodes a checkpoint, `ForcedEngine` follows a trace.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policies.api import Clairvoyant
from policies.costs import CostTable
from policies.errors import UserError
from policies.session import Session
from runtime.cpu_experts import CpuExperts
from runtime.device import Device, DeviceError
from runtime.engine_settings import EngineSettings
from runtime.expert_math import Gating
from runtime.host_arena import HostArena
from runtime.kernel_choice import slot_kernel
from runtime.layer_driver import LayerDriver
from runtime.layer_executor import LayerExecutor
from runtime.measured_log import MeasuredLog
from runtime.next_layers import NextLayers
from runtime.observations import END_PASS, FILE_NAME, Observation, write_observations
from runtime.observed_session import ObservedSession
from runtime.offload_listener import OffloadListener
from runtime.pace import Pace
from runtime.slots import SlotPool
from runtime.standin import StandIn
from runtime.transfers import Transfers
from traces.manifest import ModelInfo
from traces.runlog import RunInfo, RunLog, RunLogBuilder


@dataclass(frozen=True)
class ModelParts:
    """What the core needs of a model. `name`, `trace`, `trace_digest`: for the log."""

    name: str
    top_k: int
    arena: HostArena
    gating: Gating
    next_layers: NextLayers
    trace: str = ""
    trace_digest: str = ""


class EngineCore:
    """Connect `driver.forward` to the model's layers and tell `listener` what the passes do.

    log: a new directory for run log and observations, which then keep all finished passes whatever
    happens; None: in memory. keep_device: after a run without error the device stays open.
    """

    def __init__(
        self,
        parts: ModelParts,
        device: Device,
        policy: Any,
        costs: CostTable,
        settings: EngineSettings,
        log: str | Path | None,
        keep_device: bool = False,
    ) -> None:
        self.device, self.closed = device, False
        self._keep_device = keep_device
        self.log_path = None if log is None else Path(log)
        layout = parts.arena.layout
        self._pool = pool = SlotPool(layout, settings.slots, settings.staging, device)
        self.transfers = Transfers(device, parts.arena, pool)
        shape = settings.shape(layout.layers, layout.experts, parts.top_k)
        self.session = Session(policy, shape, costs, self.transfers)
        logical = settings.mode == "logical"
        self.observed = ObservedSession(self.session, self.transfers, device.clock_ns, logical)
        info = _run_info(parts, policy, settings, device.name)
        self.log = MeasuredLog(RunLogBuilder(info, self.log_path))
        self.pace = pace = _pace(device, policy, costs, settings)
        self._cpu = CpuExperts(parts.arena, parts.gating, pace)
        kernel = slot_kernel(device, pool, parts.gating, pace)
        executor = LayerExecutor(device, self.transfers, self._cpu, kernel, layout.experts, pace)
        self.driver = LayerDriver(
            device, self.observed, self.transfers, executor, parts.next_layers, costs, self.log,
            pace,
        )  # fmt: skip
        self.listener = OffloadListener(
            device, self.observed, self.driver, self.transfers, self.log, pace
        )

    @property
    def observations(self) -> list[Observation]:
        """What the session was told so far."""
        return self.observed.observations

    def check_open(self) -> None:
        """DeviceError once the engine is closed."""
        if self.closed:
            raise DeviceError("the engine is closed; build a new one")

    def runlog(self) -> RunLog:
        """The log of a core without a directory, once it is closed."""
        return self.log.builder.build()

    def close(self) -> None:
        """Let the last copies land, write the rest of the log, stop all threads."""
        if self.closed:
            return
        try:
            self.transfers.drain()
        except BaseException:
            self.abandon()
            raise
        self.closed = True
        self.log.copies(self.transfers.take_records())
        if self._keep_device:
            self._cpu.stop()
        else:
            self._stop()
        self._pool.free()
        if self.log_path is not None:
            self.log.builder.close()
            write_observations(self.log_path / FILE_NAME, self.observations)

    def abandon(self) -> None:
        """After an error: keep whole passes, leave the log marked incomplete, stop all threads."""
        if self.closed:
            return
        self.closed = True
        with suppress(DeviceError):  # the error that brought us here is the one to report
            self._stop()
        whole = self.observations
        ends = [place for place, one in enumerate(whole) if one.call == END_PASS]
        del whole[ends[-1] + 1 if ends else 0 :]
        self.log.forget_unfinished()
        if self.log_path is not None:
            self.log.builder.flush()
            write_observations(self.log_path / FILE_NAME, whole)

    def _stop(self) -> None:
        try:
            self.device.close()
        finally:
            self._cpu.stop()


def refuse_clairvoyant(policy: Any) -> None:
    """UserError for a policy that must be shown the future."""
    if getattr(policy, "clairvoyant", isinstance(policy, Clairvoyant)):
        raise UserError(
            f"policy {policy.name} must be shown the future, which only the simulator can do; "
            "choose another policy"
        )


def _pace(device: Device, policy: Any, costs: CostTable, settings: EngineSettings) -> Pace:
    if not settings.paced:
        return Pace(None)
    if not isinstance(device, StandIn):
        raise UserError(
            f"paced=true stretches the stand-in's times; {device.name} has its own: use paced=false"
        )
    return Pace(costs, device, policy.needs)


def _run_info(parts: ModelParts, policy: Any, settings: EngineSettings, device: str) -> RunInfo:
    sampling, layout = settings.sampling, parts.arena.layout
    return RunInfo(
        kind="measured",
        policy=policy.name,
        policy_params=policy.parameters(),
        model=ModelInfo(
            parts.name, layout.layers, layout.experts, parts.top_k, layout.expert_bytes
        ),
        slots=settings.slots,
        staging=settings.staging,
        hardware=settings.hardware,
        engine=f"runtime on {device}, {settings.mode}",
        trace=parts.trace,
        trace_digest=parts.trace_digest,
        expert_bytes=layout.expert_bytes,
        decision_source="measured",
        approximate=False,
        notes={
            "dtype": settings.dtype,
            "experts": settings.experts,
            "gamma": str(settings.gamma),
            "sampling": f"{sampling.mode} T={sampling.temperature} seed={sampling.seed}",
            **settings.truncation.limits,
            "paced": str(settings.paced).lower(),
            "launch": "early" if settings.launch_early else "late",
        },
    )
