"""Setting: everything a simulated run is played with besides policy and trace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from experiments.decision_file import DecisionFile, choose_decision, source_of, times_of
from experiments.machine import NO_DRAFT, Capacity, Machine
from experiments.values import whole_number
from policies.costs import CostTable
from simulator.cost_tables import cost_table
from simulator.requirements import rows_needed
from simulator.settings import RunLabels, SimulationSettings
from traces.manifest import ModelInfo
from traces.reader import Trace
from traces.replay import Replay


@dataclass(frozen=True)
class Setting:
    """One point of a grid. `speculation` false: no draft, its VRAM given to slots, gamma 0.
    `decision`: measured times of policies; None: those that the hardware profile assumes."""

    machine: Machine
    capacity: Capacity
    gamma: int
    staging: int
    launch: str
    lanes: str
    requests: int | None
    engine: str = "auto"
    speculation: bool = True
    decision: DecisionFile | None = None

    def slots(self, trace: ModelInfo) -> int:
        """Slots for the trace's layers x experts."""
        slots = self.capacity.of(self.machine, trace, self.staging)
        if self.speculation or self.capacity.vram:
            return slots
        total = trace.layers * trace.experts
        return min(slots + int(self.machine.draft_share(trace) * total), total)

    def cache_ratio(self, trace: ModelInfo) -> float:
        """The ratio asked for, or what the slots amount to; the draft's share is not in it."""
        if self.capacity.cache_ratio is not None:
            return self.capacity.cache_ratio
        slots = self.capacity.of(self.machine, trace, self.staging)
        return round(slots / (trace.layers * trace.experts), 4)

    def simulation(self, trace: ModelInfo) -> SimulationSettings:
        """The engine's settings."""
        return SimulationSettings(
            gamma=self.gamma if self.speculation else 0,
            slots=self.slots(trace),
            staging=self.staging,
            launch=self.launch,  # type: ignore[arg-type]
            lanes=self.lanes,  # type: ignore[arg-type]
            requests=self.requests,
        )

    def costs(self, replay: Replay, policy: str) -> CostTable:
        """Times of the model on the machine, for the trace's number of layers, and of the decisions
        of `policy`, a name of conf/policy; UserError where they were to be measured and are not."""
        machine = self.machine
        return cost_table(
            machine.hardware,
            machine.model(replay.model),
            machine.draft if self.speculation else NO_DRAFT,
            rows_needed(replay, self.gamma),
            machine.dtype,
            replay.model.layers,
            times_of(policy, self.decision),
        )

    def labels(self, trace: Trace, notes: Mapping[str, str] | None = None) -> RunLabels:
        """Names for the run log."""
        return RunLabels(
            hardware=self.machine.hardware.name,
            trace=trace.manifest.workload,
            trace_digest=trace.digest,
            model=self.machine.model(trace.manifest.model).name,
            decision_source=self.decision_source,
            notes=dict(notes or {}),
        )

    @property
    def decision_source(self) -> str:
        """Where the charged decision times come from, for tables and run logs."""
        return source_of(self.machine.hardware.name, self.decision)

    def scale_note(self, trace: ModelInfo) -> str:
        """How the trace's layers relate to the model's, for every table."""
        model = self.machine.model(trace)
        if model.moe_layers == trace.layers:
            return f"{trace.layers} layers"
        return (
            f"trace of {trace.layers} layers x {trace.experts} experts with the costs of "
            f"{model.name} ({model.moe_layers} layers): a pass of the whole model takes about "
            f"{model.moe_layers / trace.layers:.1f} times as long"
        )


def settings_from(
    config: DictConfig, machine: Machine, capacities: list[Capacity], gammas: list[Any]
) -> list[Setting]:
    """The grid capacities x gammas, in order."""
    settings = []
    decision = choose_decision(config.decision)
    requests = config.requests
    if requests is not None:
        requests = whole_number("requests", requests)
    for capacity in capacities:
        for gamma in gammas:
            settings.append(
                Setting(
                    machine=machine,
                    capacity=capacity,
                    gamma=whole_number("gamma", gamma),
                    staging=whole_number("staging", config.staging),
                    launch=str(config.launch),
                    lanes=str(config.lanes),
                    requests=requests,
                    engine=str(config.engine),
                    decision=decision,
                )
            )
    return settings
