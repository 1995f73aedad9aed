"""OffloadedEngine: a target with its experts in host memory, decoded speculatively."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from policies.api import Clairvoyant
from policies.costs import CostTable
from policies.errors import UserError
from policies.session import Session
from runtime.checkpoints import CheckpointFacts, open_target, torch_dtype
from runtime.cpu_experts import CpuExperts
from runtime.device import Device, DeviceError
from runtime.draft_model import open_draft_model
from runtime.engine_settings import EngineSettings
from runtime.expert_layout import ExpertLayout, layout_of
from runtime.experts import activation_of, connect
from runtime.host_arena import load_arena
from runtime.layer_driver import LayerDriver
from runtime.layer_executor import LayerExecutor
from runtime.measured_log import MeasuredLog
from runtime.memory_plan import check_memory, plan_memory
from runtime.next_layers import NextLayers, horizon_of
from runtime.observations import END_PASS, FILE_NAME, Observation, write_observations
from runtime.observed_session import ObservedSession
from runtime.offload_listener import OffloadListener
from runtime.pace import Pace
from runtime.prompts import Prompt, check_prompts
from runtime.slots import SlotPool
from runtime.speculative import SpeculativeDecoder
from runtime.stopping import StopRule
from runtime.target_shell import load_shell, shell_bytes
from runtime.transfers import Transfers
from runtime.verify_rules import make_rule
from traces.manifest import ModelInfo
from traces.runlog import RunInfo, RunLog, RunLogBuilder


class OffloadedEngine:
    """One policy over one slot pool; slots and policy state survive requests. Owns `device`.

    target, draft: checkpoint directories, draft None with gamma 0. log: a new directory for run log
    and observations, which then keep all finished passes whatever happens; None: in memory, see
    `runlog`. After an error the engine is closed.
    """

    def __init__(
        self,
        target: str | Path,
        draft: str | Path | None,
        device: Device,
        policy: Any,
        costs: CostTable,
        settings: EngineSettings,
        log: str | Path | None = None,
    ) -> None:
        self.settings, self.device = settings, device
        self.facts = open_target(target)
        self.layout = layout_of(self.facts, torch_dtype(settings.dtype))
        _refuse_clairvoyant(policy)
        self.log_path = None if log is None else Path(log)
        self._closed = False
        self._requests = 0
        try:
            self._build(draft, policy, costs)
        except BaseException:
            device.close()
            raise

    def _build(self, draft: str | Path | None, policy: Any, costs: CostTable) -> None:
        settings, device, facts, layout = self.settings, self.device, self.facts, self.layout
        others = shell_bytes(facts, layout.dtype)
        plan = plan_memory(layout, settings.slots, settings.staging, others)
        check_memory(plan, device.memory())
        self.arena = arena = load_arena(facts, layout, device)
        target = load_shell(facts, device.torch_device, layout.dtype)
        place = str(device.torch_device)
        draft_model = open_draft_model(draft, facts, place, settings.dtype)
        pool = SlotPool(layout, settings.slots, settings.staging, device)
        self._transfers = Transfers(device, arena, pool)
        self.session = Session(
            policy,
            settings.shape(layout.layers, layout.experts, facts.top_k),
            costs,
            self._transfers,
        )
        logical = settings.mode == "logical"
        observed = ObservedSession(self.session, self._transfers, device.clock_ns, logical)
        self._observed = observed
        info = _run_info(facts, layout, policy, settings, device.name)
        self._log = MeasuredLog(RunLogBuilder(info, self.log_path))
        activation = activation_of(target)
        pace = Pace(costs if settings.paced else None)
        self._cpu = CpuExperts(arena, activation, pace)
        executor = LayerExecutor(device, pool, self._transfers, self._cpu, activation, pace)
        routers = NextLayers(target.routers, horizon_of(policy.needs), facts.top_k)
        driver = LayerDriver(
            device, observed, self._transfers, executor, routers, costs, self._log, pace
        )
        connect(target, driver.forward)
        rule = make_rule(settings.sampling, facts.vocabulary, device.torch_device)
        self.listener = OffloadListener(device, observed, driver, self._transfers, self._log, pace)
        self.target, self.draft = target, draft_model
        self._decoder = SpeculativeDecoder(target, draft_model, rule, settings.gamma, self.listener)

    @property
    def observations(self) -> list[Observation]:
        """What the session was told so far."""
        return self._observed.observations

    def generate(
        self, prompt: Sequence[int], max_new_tokens: int, warmup: bool = False
    ) -> Iterator[list[int]]:
        """Yield newly committed tokens, pass by pass. warmup: leave the request out of all rates.

        DeviceError if a copy or a worker fails; the log then ends with the last whole pass.
        """
        if self._closed:
            raise DeviceError("the engine is closed; build a new one")
        request, self._requests = self._requests, self._requests + 1
        facts = self.facts if self.draft is None else self.draft.facts
        positions = min(self.facts.max_positions, facts.max_positions)
        room = max_new_tokens + self.settings.gamma
        check_prompts(
            [Prompt(f"number {request}", tuple(prompt))], self.facts.vocabulary, room, positions
        )
        self._log.warmup = warmup
        stop = StopRule(max_new_tokens, self.facts.end_tokens)
        try:
            yield from self._decoder.generate(request, prompt, stop)
        except (Exception, KeyboardInterrupt):
            self._abandon()
            raise

    def runlog(self) -> RunLog:
        """The log of an engine without a directory, once it is closed."""
        return self._log.builder.build()

    def close(self) -> None:
        """Let the last copies land, write the rest of the log, stop all threads."""
        if self._closed:
            return
        try:
            self._transfers.drain()
        except BaseException:
            self._abandon()
            raise
        self._closed = True
        self._log.copies(self._transfers.take_records())
        self._stop()
        if self.log_path is not None:
            self._log.builder.close()
            write_observations(self.log_path / FILE_NAME, self.observations)

    def _abandon(self) -> None:
        """After an error: keep whole passes, leave the log marked incomplete, stop all threads."""
        self._closed = True
        with suppress(DeviceError):  # the error that brought us here is the one to report
            self._stop()
        whole = self.observations
        ends = [place for place, one in enumerate(whole) if one.call == END_PASS]
        del whole[ends[-1] + 1 if ends else 0 :]
        if self.log_path is not None:
            self._log.builder.flush()
            write_observations(self.log_path / FILE_NAME, whole)

    def _stop(self) -> None:
        try:
            self.device.close()
        finally:
            self._cpu.stop()

    def __enter__(self) -> "OffloadedEngine":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        elif not self._closed:
            self._abandon()


def _refuse_clairvoyant(policy: Any) -> None:
    sees_future = getattr(policy, "clairvoyant", isinstance(policy, Clairvoyant))
    if sees_future:
        raise UserError(
            f"policy {policy.name} must be shown the future, which only the simulator can do; "
            "choose another policy"
        )


def _run_info(
    facts: CheckpointFacts,
    layout: ExpertLayout,
    policy: Any,
    settings: EngineSettings,
    device: str,
) -> RunInfo:
    sampling = settings.sampling
    return RunInfo(
        kind="measured",
        policy=policy.name,
        policy_params=policy.parameters(),
        model=ModelInfo(
            facts.name, layout.layers, layout.experts, facts.top_k, layout.expert_bytes
        ),
        slots=settings.slots,
        staging=settings.staging,
        hardware=settings.hardware,
        engine=f"runtime on {device}, {settings.mode}",
        trace="",
        trace_digest="",
        expert_bytes=layout.expert_bytes,
        decision_source="measured",
        approximate=False,
        notes={
            "dtype": settings.dtype,
            "gamma": str(settings.gamma),
            "sampling": f"{sampling.mode} T={sampling.temperature} seed={sampling.seed}",
            "paced": str(settings.paced).lower(),
            "launch": "late",  # residents start after the decision, whatever launch_early demands
        },
    )
